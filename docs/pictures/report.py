"""Take docs/pictures/report.png from the report page of a finished rush_hour run; needs chromium and chromedriver.

python -m vefl_sim experiments/rush_hour.toml && python docs/pictures/report.py
"""

import ending  # noqa: F401

import shutil
import sys
from base64 import b64decode
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from vefl_sim.analysis.report.page import write_report
from vefl_sim.analysis.runs import find_run

TIME_MS, CV = 22_900, 21  # shortly before it leaves coverage


def main() -> None:
    """Write the page, open it, choose the CV, and cut out the replay."""
    page = write_report(find_run(sys.argv[1] if len(sys.argv) > 1 else "rush-hour"))
    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--window-size=1280,900", "--hide-scrollbars"):
        options.add_argument(option)
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.get(page.resolve().as_uri())
        WebDriverWait(browser, 20).until(lambda b: b.find_elements(By.CSS_SELECTOR, "html.ready"))
        browser.execute_script("report.clock.choose(arguments[1]); report.clock.set(arguments[0])", TIME_MS, CV)
        box = browser.find_element(By.CSS_SELECTOR, ".replay").rect
        clip = {
            "x": box["x"] - 12,
            "y": box["y"] - 12,
            "width": box["width"] + 24,
            "height": box["height"] + 24,
            "scale": 1,
        }
        picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        (Path(__file__).parent / "report.png").write_bytes(b64decode(picture["data"]))
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
