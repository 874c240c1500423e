"""The runs that several tests of report pages show."""

import pytest

from tests.analysis.report.pages import RUSH
from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import Run, from_tables, simulate


@pytest.fixture(scope="session")
def rush(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with losses, on the street grid."""
    return simulate(RUSH, out=tmp_path_factory.mktemp("rush"))


@pytest.fixture(scope="session")
def three_cars(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The golden run: three cars, two rounds, two losses, all slots recorded."""
    return simulate(from_tables(EXPERIMENT), out=tmp_path_factory.mktemp("golden"))
