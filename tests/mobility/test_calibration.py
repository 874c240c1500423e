"""How a pilot at the run's own step corrects the rate; SUMO itself is in test_sumo_long.py."""

import pytest

from vefl_sim.mobility.sumo.calibration import Pilot, _corrected, _growth


def test_numbers_grow_as_they_did_between_the_pilots() -> None:
    far, near, best = Pilot(0.1, 1.0, 0.5), Pilot(1.0, 10.0, 0.5), Pilot(2.0, 40.0, 0.5)
    assert _growth(best, [far, near, best]) == pytest.approx(2.0)
    assert _growth(best, [best]) == 1.0


def test_a_rate_is_corrected_unless_it_is_near() -> None:
    assert _corrected(Pilot(2.0, 40.8, 0.1), 1.0, 35.0) == pytest.approx(2.0 * 35 / 40.8)
    assert _corrected(Pilot(2.0, 40.8, 0.1), 2.0, 35.0) == pytest.approx(2.0 * (35 / 40.8) ** 0.5)
    assert _corrected(Pilot(2.0, 36.0, 0.1), 1.0, 35.0) == 2.0
    assert _corrected(Pilot(2.0, 0.0, 0.1), 1.0, 35.0) == 2.0
