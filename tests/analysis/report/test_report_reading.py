"""The charts of a report page can be read by keyboard, without colours, and in any light."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from vefl_sim import Run
from vefl_sim.analysis.report.page import write_report

pytest.importorskip("selenium", reason="selenium is not installed")

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.analysis.report.browsing import show, time_of


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


def test_a_confusion_matrix_names_its_classes(browser: webdriver.Chrome, three_cars: Run, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(three_cars.path, tmp_path / "run"))
    names = ["no entry", "end of priority", "constructor"]
    note = {"round": 2, "classes": names, "counts": [[6, 2, 0], [1, 2, 1], [0, 0, 0]]}
    (copy / "confusion.json").write_text(json.dumps(note))
    show(browser, write_report(Run(copy)))
    texts = [text.text for text in browser.find_elements(By.CSS_SELECTOR, "#confusion text")]
    assert [texts.count(name) for name in names] == [2, 2, 2]  # of a row and of a column
    assert [text for text in texts if text.endswith(("%", "–"))] == ["75%", "50%", "–"]
    browser.find_element(By.CSS_SELECTOR, "#confusion svg").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    line = browser.find_element(By.CSS_SELECTOR, "#confusion .reading-line")
    assert line.text == "end of priority taken for no entry: 1 of 4"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(browser: webdriver.Chrome, rush: Run, scheme: str) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    show(browser, write_report(rush))
    colours = browser.execute_script(
        "const style = getComputedStyle(document.documentElement);"
        "return Object.fromEntries(arguments[0].map((name) => [name, style.getPropertyValue('--' + name).trim()]))",
        ["paper", "wash", "note", "warn", "stop", "ink", "muted", "red", "blue", "green"],
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    for text, backs in {
        "ink": "paper wash note warn stop",
        "muted": "paper wash note",
        "red": "paper wash note",
    }.items():
        for back in backs.split():
            assert contrast(colours[text], colours[back]) >= 4.5, (text, back)
    assert contrast(colours["blue"], colours["wash"]) >= 4.5
    for cell in ("green", "red"):  # the strongest cells of a confusion matrix
        mixed = [(one + other) / 2 for one, other in zip(rgb(colours[cell]), rgb(colours["paper"]), strict=True)]
        assert contrast(colours["ink"], mixed) >= 4.5


def rgb(colour: str) -> list[float]:
    digits = colour.removeprefix("#")
    parts = [2 * digit for digit in digits] if len(digits) == 3 else [digits[:2], digits[2:4], digits[4:]]
    return [int(part, 16) for part in parts]


def contrast(one: str | list[float], other: str | list[float]) -> float:
    """The ratio of the luminances of two colours, as the guidelines for accessible web content define it."""

    def luminance(colour: str | list[float]) -> float:
        shares = np.array(rgb(colour) if isinstance(colour, str) else colour) / 255
        linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
