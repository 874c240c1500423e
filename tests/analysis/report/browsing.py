"""Headless Chromium for the tests of report pages, and what they do with a page."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

_OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", "--window-size=1280,900",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--force-prefers-reduced-motion",
)  # fmt: skip


def started(profile: Path) -> Iterator[webdriver.Chrome]:
    """A browser that notes its requests and messages; the test is skipped where it is missing."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("chromium or chromedriver is missing (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    for option in (*_OPTIONS, f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.binary_location = chromium
    more_than_ten = {"profile.default_content_setting_values.automatic_downloads": 1}  # files from one page
    options.add_experimental_option("prefs", more_than_ten)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    browser = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield browser
    browser.quit()


def show(browser: webdriver.Chrome, path: Path) -> None:
    """Open a page and wait until it is drawn."""
    browser.get(path.as_uri())
    WebDriverWait(browser, 20).until(lambda b: b.find_elements(By.CSS_SELECTOR, "html.ready"))


def fits(page: webdriver.Chrome, width_px: int) -> bool:
    """Make the window this wide; whether the page fits in, once its charts have been drawn again for this width."""
    screen = {"width": width_px, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)  # a window is never narrower than 500 px
    fitting = "return innerWidth == arguments[0] && arguments[1].scrollWidth <= arguments[1].clientWidth"
    root = page.find_element(By.TAG_NAME, "html")
    try:
        WebDriverWait(page, 20).until(lambda shown: shown.execute_script(fitting, width_px, root))
    except TimeoutException:
        return False
    return True


def time_of(page: webdriver.Chrome) -> float:
    return float(page.execute_script("return report.clock.time"))


def at(page: webdriver.Chrome, time_ms: float, cv: int | None = None) -> None:
    page.execute_script(
        "report.clock.pause(); report.clock.choose(arguments[1]); report.clock.set(arguments[0])", time_ms, cv
    )
