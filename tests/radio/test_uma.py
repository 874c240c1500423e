"""Path loss and line-of-sight probability against reference values of TR 38.901: ns-3's test suite and Sionna."""

import csv
from pathlib import Path

import numpy as np
import pytest

from vefl_sim.radio.uma import los_probability, pathloss_db

REFERENCES = Path(__file__).parents[2].parent / "shared" / "refs"
needs_references = pytest.mark.skipif(not REFERENCES.is_dir(), reason="reference tables are not on this machine")


@pytest.mark.parametrize(
    ("los", "d2d_m", "expected_db"),
    [
        (True, 10.0, 72.938), (True, 100.0, 86.2362), (True, 1000.0, 109.7252), (True, 5000.0, 137.6794),
        (False, 10.0, 82.5131), (False, 100.0, 106.1356), (False, 1000.0, 144.7641), (False, 5000.0, 172.0753),
    ],
)  # fmt: skip
def test_pathloss_of_the_ns3_test_suite_at_5_ghz(los: bool, d2d_m: float, expected_db: float) -> None:
    assert pathloss_db(d2d_m, los=los, carrier_ghz=5.0) == pytest.approx(expected_db, abs=0.01)  # ns-3: c = 3e8


@needs_references
def test_pathloss_table() -> None:
    for row in csv.DictReader((REFERENCES / "uma_pathloss.csv").open()):
        got = pathloss_db(
            float(row["d2d_m"]), los=row["condition"] == "LOS", carrier_ghz=float(row["fc_ghz"]),
            h_bs_m=float(row["h_bs"]), h_ut_m=float(row["h_ut"]),
        )  # fmt: skip
        tolerance = 0.01 if row["source"].startswith("ns-3") else 1e-6
        assert got == pytest.approx(float(row["expected_pathloss_db"]), abs=tolerance), row


@needs_references
def test_los_probability_table() -> None:
    for row in csv.DictReader((REFERENCES / "uma_los_probability.csv").open()):
        got = los_probability(float(row["d2d_m"]), h_ut_m=float(row["h_ut"]))
        assert got == pytest.approx(float(row["expected_p_los"]), abs=1e-8), row


@pytest.mark.parametrize(("carrier_ghz", "breakpoint_m"), [(2.0, 320), (3.5, 560), (5.9, 945)])
def test_pathloss_is_continuous_at_the_breakpoint_and_steeper_beyond(carrier_ghz: float, breakpoint_m: float) -> None:
    around = np.array([0.5, 0.999, 1.001, 2.0]) * breakpoint_m
    loss = pathloss_db(around, los=True, carrier_ghz=carrier_ghz)
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
