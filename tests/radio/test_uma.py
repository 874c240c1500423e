"""Path loss and line-of-sight probability against reference values of TR 38.901: ns-3's test suite and Sionna."""

import numpy as np
import pytest

from vefl_sim.radio.uma import los_probability, pathloss_db


@pytest.mark.parametrize(
    ("los", "d2d_m", "expected_db"),
    [
        (True, 10.0, 72.938), (True, 100.0, 86.2362), (True, 1000.0, 109.7252), (True, 5000.0, 137.6794),
        (False, 10.0, 82.5131), (False, 100.0, 106.1356), (False, 1000.0, 144.7641), (False, 5000.0, 172.0753),
    ],
)  # fmt: skip
def test_pathloss_of_the_ns3_test_suite_at_5_ghz(los: bool, d2d_m: float, expected_db: float) -> None:
    assert pathloss_db(d2d_m, los=los, carrier_ghz=5.0) == pytest.approx(expected_db, abs=0.01)  # ns-3: c = 3e8


PATHLOSS = (
    (True, 10, 1.5, 0.9, 58.043405),
    (True, 18, 1.5, 0.9, 59.453759),
    (True, 50, 1.6, 0.9, 65.408325),
    (True, 75, 2, 0.9, 68.765583),
    (True, 150, 1.6, 0.9, 75.073725),
    (True, 200, 1.5, 0.9, 80.28662),
    (True, 300, 1.6, 0.9, 85.870259),
    (True, 350, 1.5, 0.9, 89.928112),
    (True, 450, 1.5, 0.9, 94.278477),
    (True, 500, 1.5, 0.9, 96.104287),
    (True, 1000, 1.6, 0.9, 106.737479),
    (True, 2000, 1.5, 0.9, 120.16872),
    (False, 10, 2, 0.9, 67.010484),
    (False, 18, 1.5, 0.9, 70.123802),
    (False, 50, 1.6, 0.9, 80.641277),
    (False, 75, 1.6, 0.9, 86.630543),
    (False, 150, 1.5, 0.9, 97.872268),
    (False, 200, 1.6, 0.9, 102.604481),
    (False, 300, 2, 0.9, 109.180482),
    (False, 350, 2, 0.9, 111.783597),
    (False, 450, 2, 0.9, 116.034535),
    (False, 500, 1.5, 0.9, 118.119323),
    (False, 1000, 2, 0.9, 129.569338),
    (False, 2000, 1.5, 0.9, 141.630274),
)
"""(line of sight, distance in m, height of the CV in m, carrier in GHz, dB) by Sionna 1.2.1, with a gNB at 25 m."""
LOS_PROBABILITY = (
    (10, 1.6, 1.0),
    (18, 2, 1.0),
    (35, 1.5, 0.79296595),
    (50, 1.6, 0.64940219),
    (75, 1.5, 0.47109809),
    (100, 1.6, 0.34767084),
    (150, 1.5, 0.20136698),
    (200, 1.6, 0.12804773),
    (250, 2, 0.08954515),
    (350, 1.5, 0.05509567),
    (400, 1.6, 0.04666947),
    (450, 2, 0.04075887),
)
"""(distance in m, height of the CV in m, probability) by the test suite of ns-3 and by Sionna 1.2.1."""


@pytest.mark.parametrize(("los", "d2d_m", "h_ut_m", "carrier_ghz", "expected_db"), PATHLOSS)
def test_pathloss_of_sionna(los: bool, d2d_m: float, h_ut_m: float, carrier_ghz: float, expected_db: float) -> None:
    loss_db = pathloss_db(d2d_m, los=los, carrier_ghz=carrier_ghz, h_bs_m=25.0, h_ut_m=h_ut_m)
    assert loss_db == pytest.approx(expected_db, abs=1e-6)


@pytest.mark.parametrize(("d2d_m", "h_ut_m", "expected"), LOS_PROBABILITY)
def test_los_probability_of_ns3_and_sionna(d2d_m: float, h_ut_m: float, expected: float) -> None:
    assert los_probability(d2d_m, h_ut_m=h_ut_m) == pytest.approx(expected, abs=1e-8)


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


def test_nearer_than_ten_metres_counts_as_ten() -> None:
    assert pathloss_db(0.0, los=True, carrier_ghz=3.5) == pathloss_db(10.0, los=True, carrier_ghz=3.5)


@pytest.mark.parametrize("d2d_m", [-1.0, 5001.0, np.nan, np.inf])
def test_distance_outside_the_model_is_an_error(d2d_m: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 5000"):
        pathloss_db(d2d_m, los=True, carrier_ghz=3.5)
    with pytest.raises(ValueError, match="between 0 and 5000"):
        los_probability([10.0, d2d_m])
