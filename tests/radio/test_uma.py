"""Laws of path loss and line of sight; published values are in the sheet of `check radio`."""

import numpy as np
import pytest

from vefl_sim.radio.uma import los_probability, pathloss_db


def test_pathloss_is_continuous_at_the_breakpoint_and_steeper_beyond() -> None:
    around = np.array([0.5, 0.999, 1.001, 2.0]) * 560  # the breakpoint at 3.5 GHz
    loss = pathloss_db(around, los=True, carrier_ghz=3.5)
    assert loss[2] - loss[1] < 0.1
    assert loss[3] - loss[2] > 1.5 * (loss[1] - loss[0])  # 40 against 22 dB per decade


def test_path_loss_without_line_of_sight_is_never_lower() -> None:
    d2d_m = np.linspace(0, 5000, 2000)
    assert np.all(pathloss_db(d2d_m, los=False, carrier_ghz=3.5) >= pathloss_db(d2d_m, los=True, carrier_ghz=3.5))


def test_line_of_sight_is_certain_up_to_18_m_whatever_the_height() -> None:
    assert np.all(los_probability([0.0, 10.0, 18.0], h_ut_m=23.0) == 1.0)
    assert np.all(los_probability(np.linspace(0, 5000, 500), h_ut_m=1.5) <= 1.0)


@pytest.mark.parametrize("outside", [{"carrier_ghz": 0.1}, {"carrier_ghz": np.nan}, {"h_ut_m": 1.0}, {"h_bs_m": 0.5}])
def test_arguments_outside_the_model_are_an_error(outside: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="the UMa model needs carrier_ghz"):
        pathloss_db(100.0, **({"los": True, "carrier_ghz": 3.5} | outside))


@pytest.mark.parametrize("d2d_m", [-1.0, 5001.0, np.nan, np.inf])
def test_distance_outside_the_model_is_an_error(d2d_m: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 5000"):
        pathloss_db(d2d_m, los=True, carrier_ghz=3.5)
    with pytest.raises(ValueError, match="between 0 and 5000"):
        los_probability([10.0, d2d_m])
