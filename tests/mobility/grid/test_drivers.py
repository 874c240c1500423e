import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vefl_sim.mobility.grid.drivers import DRAWS, Drivers
from vefl_sim.mobility.idm import IdmParams

TYPICAL = IdmParams(1.5, 2.0, 1.2, 2.0, 20.0, 5.0)
NAMES = ("max_accel_mps2", "comfort_decel_mps2", "headway_s", "min_gap_m")


@given(spread=st.floats(0, 0.9), seed=st.integers(0, 1000))
def test_parameters_stay_within_the_spread_and_nobody_wants_more_than_u_max(spread, seed):
    drawn = Drivers.drawn(TYPICAL, spread, np.random.default_rng(seed).random((50, DRAWS)))
    for name in NAMES:
        assert np.all(np.abs(getattr(drawn, name) / getattr(TYPICAL, name) - 1) <= spread + 1e-12)
    assert np.all(drawn.desired_speed_mps <= 20.0)
    assert np.all(drawn.desired_speed_mps >= 20.0 * (1 - spread) - 1e-12)


def test_parameters_spread_independently():
    drawn = np.array(Drivers.drawn(TYPICAL, 0.5, np.random.default_rng(1).random((4000, DRAWS))))
    assert np.all(drawn.std(axis=1) > 0.1)
    assert np.all(np.abs(np.corrcoef(drawn) - np.eye(5)) < 0.06)


def test_without_a_spread_all_are_typical():
    drawn = Drivers.drawn(TYPICAL, 0.0, np.random.default_rng(1).random((3, DRAWS)))
    assert all(np.all(getattr(drawn, name) == getattr(TYPICAL, name)) for name in (*NAMES, "desired_speed_mps"))
