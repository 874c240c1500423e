"""The report page in headless Chromium: it asks for nothing, reports no error, and shows what the tables say."""

import json
import random
from pathlib import Path
from shutil import copytree

import numpy as np
import pandas as pd
import pytest

from tests.analysis.report.pages import hostile, trajectory
from vefl_sim import Run, from_tables, simulate, why
from vefl_sim.analysis.report.page import write_report
from vefl_sim.analysis.sweep_report.page import write_sweep_report

pytest.importorskip("selenium", reason="selenium is not installed")

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.analysis.report.browsing import at, fits, show, time_of

AHEAD = from_tables(
    {
        "run": {"name": "ahead", "duration_s": 20.0},
        "traffic": {"mean_in_coverage": 12.0},
        "data": {"kind": "positions", "partition": "own", "min_samples": 1},
        "model": {"factory": "vefl_models.mlp:mlp"},
        "learning": {"loss": "mse", "learning_rate": 0.01},
    }
)


def asked_for(browser: webdriver.Chrome) -> list[str]:
    """What our pages have requested since the last call, beside themselves; the browser's first tab asks as well."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [message["params"] for message in messages if message["method"] == "Network.requestWillBeSent"]
    ours = [params for params in sent if params["documentURL"].startswith("file:")]
    assert ours  # the page itself
    return [params["request"]["url"] for params in ours if params["request"]["url"] != params["documentURL"]]


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
    assert distances(page, between[inside]).max() < 3


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


def test_the_keyboard_keeps_its_place_in_the_story(page: webdriver.Chrome, rush: Run) -> None:
    lost = rush.vehicles.query("state == 'lost'").iloc[0]
    at(page, (lost["ordered_ns"] + lost["delay_ns"]) / 1e6, int(lost["cv"]))
    event = page.find_elements(By.CSS_SELECTOR, ".story .time")[1]
    moment = event.get_attribute("data-at")
    event.send_keys(Keys.ENTER)
    assert time_of(page) == float(moment)
    assert page.switch_to.active_element.get_attribute("data-at") == moment  # although the panel was drawn again
    page.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert page.execute_script("return report.clock.chosen") is None
    assert page.switch_to.active_element.get_attribute("id") == "panel"


def test_a_cv_that_is_not_served_has_no_prbs(browser: webdriver.Chrome, three_cars: Run, tmp_path: Path) -> None:
    show(browser, write_report(three_cars, tmp_path / "report.html"))
    first = three_cars.table("slots").query("cv == 1")["slot"].min() * three_cars.experiment.slots.slot_ns / 1e6
    served, before = browser.execute_script("return arguments[0].map((t) => report.cars.radio(1, t))", [first, 500])
    assert served["prbs"] == 1
    assert before == {"prbs": 0, "mbps": 0}


def test_lost_grants_have_a_curve_and_are_counted_in_the_panel(
    browser: webdriver.Chrome, old_knowledge: Run, tmp_path: Path
) -> None:
    def titles() -> str:
        return " ".join(heading.text for heading in browser.find_elements(By.CSS_SELECTOR, ".curve h3"))

    show(browser, write_report(old_knowledge, tmp_path / "page.html"))
    assert "Lost grants" in titles()
    second = old_knowledge.table("outages").query("round == 2")
    at(browser, 1500)
    lost, used = second["lost_slots"].sum(), second["tx_slots"].sum()
    assert f"{lost} of {used} grants of its orders were lost." in browser.find_element(By.ID, "panel").text


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
        figures = browser.find_elements(By.CSS_SELECTOR, "figure svg")
        assert len(figures) == 5
        assert all(200 < figure.size["width"] <= width and figure.size["height"] > 120 for figure in figures)
    assert fits(browser, 1280)
    assert asked_for(browser) == []
    assert browser.get_log("browser") == []
    assert not browser.execute_script("return window.hit")
    browser.find_element(By.LINK_TEXT, "page").click()
    assert browser.current_url == (own / "report.html").as_uri()


def test_a_run_that_predicts_numbers_has_curves_of_its_own_metric(browser: webdriver.Chrome, tmp_path: Path) -> None:
    show(browser, write_report(simulate(AHEAD, out=tmp_path)))
    panels = browser.find_elements(By.CSS_SELECTOR, "#curve-panels h3")
    titles = [browser.execute_script("return arguments[0].firstChild.textContent", panel) for panel in panels]
    assert titles[:2] == ["rmse", "Loss (mse)"]
    assert "%" not in panels[0].text
    assert browser.get_log("browser") == []
