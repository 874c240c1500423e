"""The documentation site: every page is in the navigation, links lead somewhere, nothing is asked of the network."""

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import vefl_sim
from tests.command_line import ENVIRONMENT, ROOT

_LOADED = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}


def test_every_page_is_in_the_navigation_once() -> None:
    listed = re.findall(r"^- \[[^\]]+\]\(([^)#]+)\)", (ROOT / "docs" / "index.md").read_text(), re.MULTILINE)
    pages = [(ROOT / "docs" / page).resolve() for page in listed]
    written = {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "experiments" / "README.md"}
    assert sorted(pages) == sorted(written - {ROOT / "docs" / "index.md"})


def test_all_public_names_are_documented_once() -> None:
    lines = re.findall(r"^Names: (.+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    assert sorted(name for line in lines for name in re.findall(r"`(\w+)`", line)) == dir(vefl_sim)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it; a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-c", "docs/site", "-W", "--keep-going", "-q", "-d", folder / "trees"]
    built = subprocess.run([*build, ".", folder / "html"], cwd=ROOT, env=ENVIRONMENT, text=True, stderr=subprocess.PIPE)
    assert built.returncode == 0, built.stderr
    return folder / "html"


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    assert len(pages) > 30
    assert not [(page.name, address) for page in pages for address in _foreign(page)]
    styles = [(file.name, file.read_text()) for file in site.rglob("*.css")]
    assert not [name for name, text in styles if re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", text)]


def _foreign(page: Path) -> list[str]:
    """What a browser loads from elsewhere when it shows the page."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            address = dict(attributes).get(_LOADED.get(tag, ""))
            if (
                address
                and re.match(r"(https?:)?//", address)
                and not (tag == "link" and dict(attributes).get("rel") == "canonical")
            ):
                found.append(address)

    Reader().feed(page.read_text())
    return found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium, or a skipped test."""
    pytest.importorskip("selenium", reason="selenium is not installed")
    from tests.analysis.report.browsing import started

    yield from started(tmp_path_factory.mktemp("profile"))


@pytest.mark.slow
@pytest.mark.parametrize("width_px", [1280, 390])
def test_no_page_is_wider_than_the_screen(site: Path, browser: Any, width_px: int) -> None:
    """Wide tables and blocks scroll in boxes of their own."""
    phone = {"width": width_px, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    wide = []
    for page in sorted(site.rglob("*.html")):
        browser.get(page.as_uri())
        if browser.execute_script("return document.documentElement.scrollWidth") > width_px:
            wide.append(page.name)
    assert not wide
