import numpy as np
import pytest

from vefl_sim.experiment.experiment import RadioTable
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


def two_channels(**keys: object) -> tuple[LargeScale, LargeScale]:
    """The same channel, once following its CVs and once held during a round."""
    radios = (RadioTable.model_validate({"large_scale": when} | keys) for when in ("step", "round"))
    following, held = (LargeScale(radio, np.random.default_rng(3)) for radio in radios)
    return following, held


def drive(channels: tuple[LargeScale, ...], *x_m: float) -> None:
    for channel in channels:
        channel.move(scene(np.array(x_m)))


def test_during_a_round_a_held_channel_stays_as_at_its_start() -> None:
    following, held = channels = two_channels()
    drive(channels, 100.0, 300.0)
    held.begin_round()
    cvs = np.array([0, 1])
    start_db, start_los = following.loss_db(cvs), following.line_of_sight(cvs)
    for step in range(1, 6):
        drive(channels, 100.0 + 30 * step, 300.0 - 30 * step)
        assert np.array_equal(held.loss_db(cvs), start_db)
        assert np.array_equal(held.line_of_sight(cvs), start_los)
        assert not np.isclose(following.loss_db(cvs), start_db).any()
    held.begin_round()
    assert np.array_equal(held.loss_db(cvs), following.loss_db(cvs))


def test_a_cv_that_enters_during_a_round_is_held_from_its_entry_and_released_when_it_leaves() -> None:
    following, held = channels = two_channels()
    cv = np.array([0])
    drive(channels, 520.0)
    held.begin_round()
    entered_db, first_db = 0.0, 0.0
    for x_m, is_held in ((510.0, False), (495.0, False), (480.0, True), (460.0, True), (501.0, False), (499.0, False)):
        drive(channels, x_m)
        if not is_held:  # outside, or in its first scene in coverage
            entered_db = float(following.loss_db(cv)[0])
        assert held.loss_db(cv)[0] == entered_db
        first_db = first_db or (entered_db if is_held else 0.0)
    assert held.loss_db(cv)[0] not in (first_db, 0.0)  # it came back, and is as at its second entry


def test_a_restored_channel_is_still_held() -> None:
    _, held = channels = two_channels()
    drive(channels, 100.0)
    held.begin_round()
    drive(channels, 200.0)
    restored = LargeScale(RadioTable(large_scale="round"), np.random.default_rng(99))
    restored.restore(held.state())
    for x_m in (250.0, 300.0):
        drive((held, restored), x_m)
        assert held.loss_db(np.array([0])) == restored.loss_db(np.array([0]))
