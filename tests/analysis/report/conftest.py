"""The runs that several tests of report pages show."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.analysis.report.pages import RUSH
from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import Run, from_tables, simulate, with_settings
from vefl_sim.analysis.report.page import write_report


@pytest.fixture(scope="session")
def rush(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with losses, on the street grid."""
    return simulate(RUSH, out=tmp_path_factory.mktemp("rush"))


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two rounds of the default world, in which every update arrives."""
    tables = {"run": {"name": "calm", "rounds": 2}, "learning": {"kind": "none"}}
    return simulate(from_tables(tables), out=tmp_path_factory.mktemp("calm"))


@pytest.fixture(scope="session")
def old_knowledge(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The three cars with channel knowledge so old that many grants are lost."""
    settings = ("radio.csi_delay_slots=4", "radio.fading=rayleigh")
    return simulate(with_settings(from_tables(EXPERIMENT), *settings), out=tmp_path_factory.mktemp("old"))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium."""
    pytest.importorskip("selenium", reason="selenium is not installed")
    from tests.analysis.report.browsing import started

    yield from started(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def page(browser: Any, rush: Run) -> Any:
    """The browser with the page of a run with losses, opened once; tests of a file share it."""
    from tests.analysis.report.browsing import show

    show(browser, write_report(rush))
    return browser
