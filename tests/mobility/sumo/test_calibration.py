"""How pilot runs lead to the departure rate, and when the search stops; test_sumo_long.py tests it with SUMO."""

import pytest

from vefl_sim.core.errors import ExperimentError
from vefl_sim.mobility.sumo.demand import (
    Calibration,
    Pilot,
    _check_jam,
    _corrected_rate,
    _next_rate,
)


@pytest.mark.parametrize(
    ("found", "corrected"),
    [(40.8, 2.0 * (35 / 40.8) ** 0.5), (36.0, 2.0), (0.0, 2.0)],
)
def test_a_rate_is_corrected_unless_it_is_near(found: float, corrected: float) -> None:
    """Between the best pilot and the nearest one, numbers grow with the square of the rate."""
    far, near, best = Pilot(0.1, 1.0, 0.5), Pilot(1.0, 10.0, 0.5), Pilot(2.0, 40.0, 0.5)
    confirming = Pilot(2.0, found, 0.1)
    assert _corrected_rate(confirming, best, [far, near, best], 35.0) == pytest.approx(corrected)


def test_a_jam_is_no_reason_for_more_departures() -> None:
    flowing, jam = Pilot(1.0, 60.0, 0.5), Pilot(4.0, 90.0, 0.5, jammed=True)
    assert _next_rate([jam], 500.0) < 4.0
    assert _next_rate([flowing, jam], 500.0) == pytest.approx(2.0)
    nearer = Pilot(1.4, 80.0, 0.5, jammed=True)
    with pytest.raises(
        ExperimentError, match="with 60 vehicles in coverage the traffic still flowed, with 90 it stood still"
    ):
        _check_jam(jam, [flowing, jam, nearer], 500.0)
    _check_jam(jam, [flowing, jam], 100.0)
    assert Calibration(4.0, 100.0, 90.0, (flowing, jam)).jams
    assert not Calibration(1.0, 100.0, 60.0, (flowing, jam)).jams
