import numpy as np
import pytest

from vefl_sim.experiment.radio_tables import RadioTable
from vefl_sim.mobility.scene import Scene
from vefl_sim.radio.shadowing import LargeScale
from vefl_sim.radio.uma import los_probability, pathloss_db


def scene(x_m: np.ndarray, first: int = 0, time_ns: int = 0) -> Scene:
    count = len(x_m)
    return Scene(
        time_ns, np.arange(first, first + count), x_m, np.zeros(count), np.zeros(count), np.ones(count, np.bool_)
    )


def test_without_shadowing_the_loss_is_the_formula() -> None:
    radio = RadioTable(shadowing="none", los="never")
    large_scale = LargeScale(radio, np.random.default_rng(0))
    large_scale.move(scene(np.array([50.0, 200.0])))
    assert large_scale.loss_db(np.array([0, 1])) == pytest.approx(
        pathloss_db([50.0, 200.0], los=False, carrier_ghz=3.5)
    )


def test_line_of_sight_occurs_with_its_probability() -> None:
    large_scale = LargeScale(RadioTable(), np.random.default_rng(0))
    large_scale.move(scene(np.full(20_000, 75.0)))
    share = large_scale.line_of_sight(np.arange(20_000)).mean()
    assert share == pytest.approx(float(los_probability(75.0)), abs=0.01)


@pytest.mark.parametrize(("los", "deviation_db", "correlation_m"), [("always", 4.0, 37.0), ("never", 6.0, 50.0)])
def test_shadowing_deviation_and_correlation(los: str, deviation_db: float, correlation_m: float) -> None:
    large_scale = LargeScale(RadioTable.model_validate({"los": los}), np.random.default_rng(1))
    count, start_m = 20_000, 100.0
    cvs = np.arange(count)
    shadow = []
    for step in range(11):  # one correlation length in ten steps
        x_m = np.full(count, start_m + step * correlation_m / 10)
        large_scale.move(scene(x_m))
        shadow.append(large_scale.loss_db(cvs) - pathloss_db(x_m, los=los == "always", carrier_ghz=3.5))
    assert shadow[-1].std() == pytest.approx(deviation_db, rel=0.03)
    assert np.corrcoef(shadow[0], shadow[-1])[0, 1] == pytest.approx(np.exp(-1), abs=0.03)


def test_a_parked_cv_keeps_its_channel_while_others_come_and_go() -> None:
    large_scale = LargeScale(RadioTable(), np.random.default_rng(2))
    large_scale.move(scene(np.array([100.0, 120.0, 140.0]), first=5))
    before = large_scale.loss_db(np.array([6]))
    large_scale.move(scene(np.array([120.0, 140.0, 160.0]), first=6))
    assert large_scale.loss_db(np.array([6])) == pytest.approx(before, abs=1e-12)
