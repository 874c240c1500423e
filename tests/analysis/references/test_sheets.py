"""Our models agree with published values, and the statistics of traffic are right."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tests.scripted import ScriptedCars
from vefl_sim.analysis.references.mobility import default_traffic, mobility_sheet, survey
from vefl_sim.analysis.references.radio import radio_sheet
from vefl_sim.analysis.references.sheet import Check
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment, MobilityTable, RunTable

EXPERIMENT = Experiment(run=RunTable(name="x"), mobility=MobilityTable(step_s=0.5, max_speed_mps=20.0))


@pytest.mark.parametrize("sheet", [radio_sheet, mobility_sheet])
def test_every_line_of_the_sheet_agrees(sheet: Callable[[], Iterator[Check]]) -> None:
    checks = list(sheet())
    assert len(checks) > 20
    assert [check.what for check in checks if not check.passed] == []


def test_a_difference_is_detected() -> None:
    assert not Check("x", "y", reference=1.0, ours=1.1, tolerance=0.05, unit="dB").passed


def test_default_traffic_at_the_default_speed() -> None:
    survey = default_traffic(20.12, seed=1, duration_s=50.0)
    assert 25 < survey.in_coverage < 45
    assert 35 < survey.unique_cvs < 80
    assert 5 < survey.speed_mps < 9
    assert survey.share_below(5.0) == pytest.approx(0.3, abs=0.1)


class Cars(ScriptedCars):
    """One parked at the gNB, one that leaves from 300 m, one that enters after 6 s, and one that is always outside."""

    paths = (
        lambda s: (0.0, 0.0),
        lambda s: (300.0 + 100.0 * s, 0.0),
        lambda s: (0.0, 560.0 - 10.0 * s),
        lambda s: (0.0, 700.0),
    )


def test_figures_of_three_cars() -> None:
    found = survey(Cars(EXPERIMENT, Streams(1)), EXPERIMENT, 10.0)
    assert found.unique_cvs == 3
    # In coverage in 20 scenes: the first in all, the second until 2.0 s (5 scenes), the third from 6.0 s (8 scenes).
    assert found.in_coverage == pytest.approx((20 + 5 + 8) / 20)
    # Bounds at 0 s: 500/20 and 200/20; at 5 s only the first CV is in coverage.
    np.testing.assert_allclose(found.sojourn_s, [10.0, 25.0, 25.0])
    assert [found.share_below(t) for t in (10.0, 10.1, 30.0)] == [0, pytest.approx(1 / 3), 1]
