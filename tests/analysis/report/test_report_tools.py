"""What helps to read the report page, in headless Chromium: the first story, saved charts, explained terms."""

import json
from pathlib import Path
from shutil import copytree

import pandas as pd
import pytest
from PIL import Image

from vefl_sim import Run, simulate, why, with_settings
from vefl_sim.analysis.report.page import write_report

pytest.importorskip("selenium", reason="selenium is not installed")

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.analysis.report.browsing import fits, show


def test_the_page_opens_with_the_story_of_a_cv(browser: webdriver.Chrome, rush: Run, calm: Run, tmp_path: Path) -> None:
    show(browser, write_report(rush, tmp_path / "rush.html"))
    worst = rush.vehicles.query("state == 'lost'").sort_values("paid").iloc[-1]
    panel = browser.find_element(By.ID, "panel").text
    assert panel.startswith(f"CV {worst['cv']}\nuploading")
    assert why(rush, cv=int(worst["cv"]), round=int(worst["round"]))[-1] in panel
    show(browser, write_report(calm, tmp_path / "calm.html"))
    cv, number = browser.execute_script(
        "const {cv, round} = document.getElementById('why').dataset; return [cv, round]"
    )
    first = browser.find_element(By.CSS_SELECTOR, "#losses .who").text
    assert first == f"CV {cv}, round {number}"
    assert browser.find_element(By.ID, "chooser").get_attribute("value") == cv


def test_the_panel_is_not_empty_if_nobody_got_an_order(
    browser: webdriver.Chrome, three_cars: Run, tmp_path: Path
) -> None:
    nobody = with_settings(three_cars.experiment, "sla.energy_budget_j=[1e-5, 1e-5]")
    show(browser, write_report(simulate(nobody, out=tmp_path)))
    assert (
        "The CV was not eligible: a single iteration would exceed its energy budget."
        in browser.find_element(By.ID, "why").text
    )


def test_every_chart_can_be_saved_as_picture_and_table(browser: webdriver.Chrome, rush: Run, tmp_path: Path) -> None:
    copy = Run(Path(copytree(rush.path, tmp_path / "mine")))
    (copy.path / "confusion.json").write_text('{"round": 1, "classes": ["=1+1", "b, c"], "counts": [[3, 1], [0, 2]]}')
    show(browser, write_report(copy))
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
    assert confusion == ['true class,\'=1+1,"b, c"', "'=1+1,3,1", '"b, c",0,2']  # nothing that a spreadsheet computes
    requests = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [one["params"]["request"]["url"] for one in requests if one["method"] == "Network.requestWillBeSent"]
    assert all(url.startswith("blob:") for url in urls)
    assert browser.get_log("browser") == []


def test_terms_are_explained_on_hover_and_on_focus(browser: webdriver.Chrome, rush: Run, tmp_path: Path) -> None:
    show(browser, write_report(rush, tmp_path / "page.html"))
    chosen = browser.execute_script("return report.clock.chosen")
    tip, places = browser.find_element(By.ID, "term-tip"), "return [...document.querySelectorAll('h2, #why p')]"
    before = browser.execute_script(f"{places}.map((one) => one.getBoundingClientRect().top + scrollY)")
    assert not tip.is_displayed()
    bound = next(one for one in browser.find_elements(By.CSS_SELECTOR, "#why .term") if one.text == "sojourn bound")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", bound)
    webdriver.ActionChains(browser).move_to_element(bound).perform()
    assert tip.text.startswith("sojourn, sojourn bound: the time that a CV stays in coverage;")
    assert bound.get_attribute("aria-describedby") == "term-tip"
    assert browser.execute_script(f"{places}.map((one) => one.getBoundingClientRect().top + scrollY)") == before
    webdriver.ActionChains(browser).move_to_element(browser.find_element(By.ID, "slider")).perform()
    assert not tip.is_displayed()
    browser.execute_script("arguments[0].focus()", bound)
    assert tip.is_displayed()
    bound.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()
    assert browser.execute_script("return report.clock.chosen") == chosen
    for width in (1280, 390):
        assert fits(browser, width)
        for term in browser.find_elements(By.CSS_SELECTOR, ".tile .term, .legend .term"):
            browser.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus()", term)
            box = tip.rect
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
    assert fits(browser, 1280)
