"""The report page in headless Chromium: it asks for nothing, shows what the tables say, and can be read by keyboard."""

import json
import random
from pathlib import Path
from shutil import copytree

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.analysis.report.pages import hostile, trajectory
from vefl_sim import Run, why
from vefl_sim.analysis.report.page import write_report
from vefl_sim.analysis.sweep_report.page import write_sweep_report

pytest.importorskip("selenium", reason="selenium is not installed")

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.analysis.report.browsing import at, fits, show, time_of


def asked_for(browser: webdriver.Chrome) -> list[str]:
    """What our pages have requested since the last call, beside themselves; the browser's first tab asks as well."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [message["params"] for message in messages if message["method"] == "Network.requestWillBeSent"]
    ours = [params for params in sent if params["documentURL"].startswith("file:")]
    assert ours  # the page itself
    return [params["request"]["url"] for params in ours if params["request"]["url"] != params["documentURL"]]


def test_the_page_opens_with_the_story_of_a_cv(page: webdriver.Chrome, rush: Run) -> None:
    worst = rush.vehicles.query("state == 'lost'").sort_values("paid").iloc[-1]
    panel = page.find_element(By.ID, "panel").text
    assert panel.startswith(f"CV {worst['cv']}\nuploading")
    assert why(rush, cv=int(worst["cv"]), round=int(worst["round"]))[-1] in panel
    assert page.find_element(By.ID, "chooser").get_attribute("value") == str(worst["cv"])


def test_everything_is_drawn_without_a_request_or_an_error(page: webdriver.Chrome) -> None:
    for width in (1280, 390):
        assert fits(page, width)
        for name in ("curve-panels", "funnel-total", "funnel-rounds", "lanes", "shares-samples", "shares-distance"):
            assert page.find_element(By.ID, name).size["height"] > 60
        for figure in page.find_elements(By.CSS_SELECTOR, "#curve-panels svg")[:1]:
            figure.click()
    assert fits(page, 1280)
    assert asked_for(page) == []
    assert page.get_log("browser") == []


def test_cars_are_where_the_tables_say(page: webdriver.Chrome, rush: Run) -> None:
    draw, rows = random.Random(5), rush.table("mobility")
    instants = draw.sample(sorted({*rows["time_ns"]}), 20)
    picked = rows[rows["time_ns"].isin(instants)].groupby("time_ns").sample(20, random_state=5)
    assert len(picked) == 400
    assert distances(page, picked).max() < 1
    truth = trajectory(12)
    between = truth[truth["time_ns"] % 10**9 != 0].sample(400, random_state=5)
    rows_of = rows.groupby("vehicle")["time_ns"].agg(["min", "max"]).loc[between["vehicle"]]
    inside = between["time_ns"].between(rows_of["min"].to_numpy(int), rows_of["max"].to_numpy(int)).to_numpy()
    assert inside.sum() > 300
    assert distances(page, between[inside]).max() < 1  # a straight line between rows cuts corners by up to 9 m


def distances(page: webdriver.Chrome, rows: pd.DataFrame) -> np.ndarray:
    """How far the cars on the page are from rows of a mobility table."""
    pairs = [[int(vehicle), time / 1e6] for vehicle, time in zip(rows["vehicle"], rows["time_ns"], strict=True)]
    places = page.execute_script("return arguments[0].map(([cv, ms]) => report.cars.place(cv, ms))", pairs)
    return np.hypot(*(np.array(places, float) - rows[["x_m", "y_m"]].to_numpy(float)).T)


def test_the_panel_explains_updates_like_why(page: webdriver.Chrome, rush: Run) -> None:
    orders = rush.vehicles.dropna(subset=["ordered_ns"]).sample(20, random_state=3)
    pairs = orders[["cv", "round", "ordered_ns"]].to_numpy().tolist()
    shown = page.execute_script(
        "return arguments[0].map(([cv, round, ordered_ns]) => {"
        "  report.clock.chosen = cv;"
        "  report.clock.set(ordered_ns / 1e6 + 1);"
        "  return [...document.querySelectorAll('#why p')].map((line) => line.textContent);"
        "})",
        pairs,
    )
    assert shown == [why(rush, cv=cv, round=round_) for cv, round_, _ in pairs]


def test_a_lost_update_is_two_clicks_away(page: webdriver.Chrome, rush: Run) -> None:
    worst = rush.vehicles.query("state == 'lost'").sort_values("paid").iloc[-1]
    at(page, 0)
    first = page.find_element(By.CSS_SELECTOR, ".losses li")
    page.execute_script("arguments[0].scrollIntoView()", first)
    first.find_element(By.TAG_NAME, "summary").click()
    first.find_element(By.TAG_NAME, "button").click()
    assert page.execute_script("return report.clock.chosen") == worst["cv"]
    assert f"Why, in round {worst['round']}" in page.find_element(By.ID, "panel").text


def test_a_click_on_a_car_chooses_it(page: webdriver.Chrome) -> None:
    at(page, 7000)
    canvas = page.find_element(By.ID, "map")
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    cv, x, y = page.execute_script(
        "const map = arguments[0].getBoundingClientRect();"
        "const cv = report.cars.cvs.find((one) => report.cars.state(one, 7000) === 'training');"
        "const car = report.map.shown.find((one) => one.vehicle === cv);"
        "return [cv, car.px - map.width / 2, car.py - map.height / 2]",
        canvas,
    )
    webdriver.ActionChains(page).move_to_element_with_offset(canvas, round(x), round(y)).click().perform()
    assert page.execute_script("return report.clock.chosen") == cv
    assert page.find_element(By.ID, "map-tip").text == f"CV {cv}: training"


def test_keys_slider_and_play(page: webdriver.Chrome) -> None:
    at(page, 6000)
    page.find_element(By.ID, "map").send_keys(Keys.ARROW_RIGHT)
    assert time_of(page) == 7000
    page.find_element(By.ID, "map").send_keys(Keys.SHIFT, Keys.ARROW_LEFT)
    assert time_of(page) == 2000
    page.find_element(By.ID, "slider").send_keys(Keys.ARROW_RIGHT)
    assert time_of(page) == 2100
    page.find_element(By.ID, "next-round").click()
    assert time_of(page) == 5000
    page.find_elements(By.CSS_SELECTOR, "#strip .column")[2].click()
    assert time_of(page) == 10_000  # the third round
    page.find_element(By.ID, "previous-round").click()
    assert time_of(page) == 5000
    page.find_element(By.ID, "map").send_keys("n")
    first = page.execute_script("return report.clock.chosen")
    page.find_element(By.ID, "map").send_keys("n")
    assert page.execute_script("return report.clock.chosen") > first
    page.find_element(By.ID, "map").send_keys(Keys.ESCAPE)
    assert page.execute_script("return report.clock.chosen") is None
    page.find_element(By.ID, "map").send_keys(Keys.SPACE)
    assert page.find_element(By.ID, "play").get_attribute("aria-label") == "Pause"
    WebDriverWait(page, 5).until(lambda p: time_of(p) > 5200)
    page.find_element(By.ID, "play").click()
    stopped = time_of(page)
    assert page.find_element(By.ID, "play").get_attribute("aria-label") == "Play"
    assert time_of(page) == stopped
    lane = page.find_element(By.CSS_SELECTOR, ".lane")
    cv = lane.get_attribute("data-cv")
    page.execute_script("arguments[0].focus()", lane)
    assert page.find_element(By.ID, "lane-text").text.startswith("CV ")
    webdriver.ActionChains(page).send_keys(Keys.ENTER).perform()
    assert page.execute_script("return String(report.clock.chosen)") == cv
    assert page.switch_to.active_element.get_attribute("data-cv") == cv  # although the lanes were drawn again


def test_charts_can_be_read_by_keyboard(page: webdriver.Chrome, rush: Run) -> None:
    first = rush.vehicles.query("round == 1")["state"].value_counts()
    svg = page.find_element(By.CSS_SELECTOR, "#funnel-rounds div:not(.legend) > svg")
    svg.send_keys(Keys.ARROW_RIGHT)
    read = page.find_element(By.CSS_SELECTOR, "#funnel-rounds .reading-line").text
    assert read.startswith(f"round 1: {first['delivered']} delivered")
    svg.send_keys(Keys.ARROW_RIGHT)
    svg.send_keys(Keys.ENTER)
    assert time_of(page) == 5000
    for name in ("shares-samples", "shares-distance"):
        page.find_element(By.CSS_SELECTOR, f"#{name} div:not(.legend) > svg").send_keys(Keys.ARROW_DOWN)
        assert "delivered" in page.find_element(By.CSS_SELECTOR, f"#{name} .reading-line").text


def test_terms_are_explained_on_hover_and_on_focus(page: webdriver.Chrome) -> None:
    page.execute_script("document.querySelector('[data-action=jump]').click()")  # a lost update
    chosen = page.execute_script("return report.clock.chosen")
    tip, places = page.find_element(By.ID, "term-tip"), "return [...document.querySelectorAll('h2, #why p')]"
    before = page.execute_script(f"{places}.map((one) => one.getBoundingClientRect().top + scrollY)")
    assert not tip.is_displayed()
    bound = next(one for one in page.find_elements(By.CSS_SELECTOR, "#why .term") if one.text == "sojourn bound")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", bound)
    webdriver.ActionChains(page).move_to_element(bound).perform()
    assert tip.text.startswith("sojourn, sojourn bound: the time that a CV stays in coverage;")
    assert bound.get_attribute("aria-describedby") == "term-tip"
    assert page.execute_script(f"{places}.map((one) => one.getBoundingClientRect().top + scrollY)") == before
    webdriver.ActionChains(page).move_to_element(page.find_element(By.ID, "slider")).perform()
    assert not tip.is_displayed()
    page.execute_script("arguments[0].focus()", bound)
    assert tip.is_displayed()
    bound.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()
    assert page.execute_script("return report.clock.chosen") == chosen


def test_a_hostile_run_executes_nothing(browser: webdriver.Chrome, rush: Run, tmp_path: Path) -> None:
    evil = hostile(rush, tmp_path)
    browser.get_log("performance")
    show(browser, write_report(evil, tmp_path / "report.html"))
    for cv in browser.execute_script("return report.cars.cvs")[:10]:
        at(browser, 8000, cv)
    at(browser, 8000)
    browser.execute_script("document.querySelectorAll('.lane, .refused button').forEach((one) => one.focus())")
    assert "<script>hit=1</script>" in browser.find_element(By.ID, "main").text
    assert browser.execute_script("return typeof hit") == "undefined"
    assert asked_for(browser) == []
    assert browser.get_log("browser") == []


def test_the_page_of_a_sweep_fits_and_asks_for_nothing(browser: webdriver.Chrome, rush: Run, tmp_path: Path) -> None:
    own = copytree(rush.path, tmp_path / rush.path.name)
    index = tmp_path / "sweeps" / "both" / "index.csv"
    index.parent.mkdir(parents=True)
    rows = [f"{variant},{prbs},1,{own.name},done" for variant in ("A", "B <script>hit=1</script>") for prbs in (6, 12)]
    index.write_text("\n".join(["variant,radio.prbs,seed,run,status", *rows]))
    write_report(Run(own))
    for log in ("performance", "browser"):
        browser.get_log(log)  # what the pages before have done
    browser.get(write_sweep_report(index).as_uri())
    for width in (1280, 390):
        assert fits(browser, width)
        figures = browser.find_elements(By.CSS_SELECTOR, "figure img")
        assert len(figures) == 5
        assert all(200 < figure.size["width"] <= width and figure.size["height"] > 120 for figure in figures)
    assert fits(browser, 1280)
    assert all(url.startswith("data:image/svg+xml;base64,") for url in asked_for(browser))
    assert browser.get_log("browser") == []
    assert not browser.execute_script("return window.hit")
    browser.find_element(By.LINK_TEXT, "page").click()
    assert browser.current_url == (own / "report.html").as_uri()


def test_every_chart_can_be_saved_as_picture_and_table(browser: webdriver.Chrome, rush: Run, tmp_path: Path) -> None:
    copy = Run(Path(copytree(rush.path, tmp_path / "mine")))
    names = ["=1+1", "b, c", "constructor"]
    note = {"round": 2, "classes": names, "counts": [[6, 2, 0], [1, 2, 1], [0, 0, 0]]}
    (copy.path / "confusion.json").write_text(json.dumps(note))
    show(browser, write_report(copy))
    texts = [text.text for text in browser.find_elements(By.CSS_SELECTOR, "#confusion text")]
    assert [texts.count(name) for name in names] == [2, 2, 2]  # of a row and of a column
    assert [text for text in texts if text.endswith(("%", "–"))] == ["75%", "50%", "–"]
    browser.find_element(By.CSS_SELECTOR, "#confusion svg").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    line = browser.find_element(By.CSS_SELECTOR, "#confusion .reading-line")
    assert line.text == "b, c taken for =1+1: 1 of 4"
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    for log in ("performance", "browser"):
        browser.get_log(log)
    charts = ["Delivered-by-round", "Cost-by-round", "Energy-by-round", "Efficiency-by-round", "Decisions-by-round"]
    charts += ["Map", "Timeline", "Participation-by-data-size", "Participation-by-distance", "Confusion-matrix"]
    buttons = browser.find_elements(By.CSS_SELECTOR, ".downloads button")
    names = [f"mine-{chart}.{kind}" for chart in charts for kind in ("png", "csv")]
    for button, name in zip(buttons, names, strict=True):
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()  # as a user: a script may not save many files
        WebDriverWait(browser, 20, 0.02).until(lambda _, file=tmp_path / name: file.exists())
    for chart in charts:
        with Image.open(tmp_path / f"mine-{chart}.png") as picture:
            assert picture.width > 500
            assert len(picture.convert("RGB").getcolors(1 << 20)) > 20  # lines, letters and their edges
    cost = pd.read_csv(tmp_path / "mine-Cost-by-round.csv")
    assert cost["round"].tolist() == rush.rounds["round"].tolist()
    assert cost["cost"].tolist() == pytest.approx(rush.rounds["cost"], rel=1e-4)
    decisions = pd.read_csv(tmp_path / "mine-Decisions-by-round.csv")
    for name in ("in_coverage", "ordered", "delivered"):
        assert decisions[name].tolist() == rush.rounds[name].tolist()
    lost = decisions.filter(like="lost: ").sum(axis=1)
    assert lost.tolist() == (rush.rounds["ordered"] - rush.rounds["delivered"]).tolist()
    confusion = (tmp_path / "mine-Confusion-matrix.csv").read_text().splitlines()
    assert confusion[:2] == ['true class,\'=1+1,"b, c",constructor', "'=1+1,6,2,0"]  # nothing to compute
    requests = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [one["params"]["request"]["url"] for one in requests if one["method"] == "Network.requestWillBeSent"]
    assert all(url.startswith("blob:") for url in urls)
    assert browser.get_log("browser") == []
