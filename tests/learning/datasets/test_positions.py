"""Next-position prediction: what CVs record, the frame of a sample, and the split into training and test set."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from tests.scripted import ScriptedCars
from vefl_sim import from_tables
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.kinds import rule_mse
from vefl_sim.learning.datasets.positions import HISTORY_S, POSITIONS, Samples, constant_velocity, headings, record
from vefl_sim.learning.holdings import partition
from vefl_sim.mobility.scene import Scene
from vefl_sim.simulation.scenario import data_of

SECOND = 1_000_000_000


def experiment(**tables: dict[str, object]) -> Experiment:
    usual: dict[str, dict[str, object]] = {
        "run": {"name": "positions", "duration_s": 60.0},
        "data": {"kind": "positions", "partition": "own"},
        "model": {"factory": "vefl_models.mlp:mlp"},
        "learning": {"loss": "mse"},
    }
    return from_tables({name: usual.get(name, {}) | tables.get(name, {}) for name in {**usual, **tables}})


Way = Callable[[float], tuple[float, float] | None]


class Cars(ScriptedCars):
    """Cars on given paths whose speeds are those of their paths."""

    def __init__(self, *paths: Way, step_s: float = 0.5) -> None:
        super().__init__(experiment(mobility={"step_s": step_s}), Streams(1))
        self.paths = paths

    def scene(self) -> Scene:
        scene, time_s = super().scene(), self._steps * self.step_ns / 1e9
        for place, number in enumerate(scene.vehicle):
            ways = [self.paths[number - 1](time_s + shift_s) for shift_s in (0.0, 0.01)]
            if ways[0] and ways[1]:
                scene.speed_mps[place] = 100 * np.hypot(ways[1][0] - ways[0][0], ways[1][1] - ways[0][1])
        return scene


def tracks_of(*paths: Way, seconds: int = 40, step_s: float = 0.5) -> pd.DataFrame:
    return record(Cars(*paths, step_s=step_s), 500.0, seconds * SECOND)


def test_a_track_is_a_visit_to_coverage_without_a_gap() -> None:
    tracks = tracks_of(
        lambda s: (600.0 - 50 * s, 0.0),  # in coverage from 2 s to 22 s
        lambda s: None if 10 <= s < 15 else (0.0, 10 * s),  # missing for 5 s
    )
    assert tracks.vehicle.tolist() == [1] * 21 + [2] * 36
    assert tracks.track.tolist() == [0] * 21 + [1] * 10 + [2] * 26
    assert tracks.place.tolist() == [*range(21), *range(10), *range(26)]
    assert tracks.loc[0, ["x_m", "y_m"]].tolist() == [500.0, 0.0]


def test_positions_between_scenes_are_interpolated() -> None:
    tracks = tracks_of(lambda s: (10 * s, 0.0), step_s=0.3, seconds=8)
    assert np.allclose(tracks.x_m, 10.0 * np.arange(9))


def test_a_standing_car_keeps_its_heading_and_has_none_before_its_first_way() -> None:
    tracks = tracks_of(lambda s: (0.0, 8 * min(max(0.0, s - 3), 4.0)), seconds=20)
    assert np.isnan(headings(tracks)[:4]).all()
    assert np.allclose(headings(tracks)[4:], [0.0, 1.0])
    assert len(Samples.of(tracks_of(seconds=20), 3).targets) == 0  # no cars


def test_positions_are_relative_and_turned_to_the_heading() -> None:
    """A car drives south at 10 m/s and turns to its left, which is east, after 10 s."""
    samples = Samples.of(tracks_of(lambda s: (max(0.0, 10 * (s - 10)), -10 * min(s, 10.0)), seconds=20), 3)
    first, before_turn = samples.inputs[0], samples.targets[10 - HISTORY_S - 2]
    assert np.allclose(first[:, 0], [-4, -3, -2, -1, 0], atol=1e-5)
    assert np.allclose(first[:, 1], 0.0, atol=1e-5)
    assert np.allclose(first[:, 2], 1.0, atol=1e-3)
    assert np.allclose(samples.targets[0], [3.0, 0.0], atol=1e-5)
    assert np.allclose(before_turn, [2.0, 1.0], atol=1e-5)  # at 8 s: two seconds straight on, one to the left


def test_constant_velocity_is_exact_for_a_car_that_keeps_its_velocity() -> None:
    samples = Samples.of(tracks_of(lambda s: (6 * s - 100, 8 * s - 200)), 5)
    assert np.allclose(constant_velocity(samples.inputs, 5), samples.targets, atol=1e-3)
    assert np.allclose(samples.targets, [5.0, 0.0], atol=1e-5)


def faster_and_faster(s: float) -> tuple[float, float]:
    """A way whose speed, 1 + 0.04·s m/s, tells the time."""
    return s + 0.02 * s**2, 0.0


def seconds_of(inputs: np.ndarray, horizon_s: int) -> set[int]:
    """The times of all positions that samples of `faster_and_faster` are made of."""
    past = np.rint((10 * inputs[:, :, 2] - 1) / 0.04).astype(int)
    return {*past.ravel().tolist(), *(past[:, -1] + horizon_s).tolist()}


def recorded(e: Experiment) -> Dataset:
    return data_of(e, Streams(e.run.seed))


@pytest.fixture(scope="module")
def usual() -> Dataset:
    """The data set of the usual experiment."""
    return recorded(experiment())


def test_no_position_of_the_test_set_is_in_the_training_set() -> None:
    e = experiment(run={"duration_s": 120.0})
    dataset = POSITIONS.make(e, np.random.default_rng(1), Cars(faster_and_faster))
    train, test = (seconds_of(inputs, 3) for inputs in (dataset.train_inputs, dataset.test_inputs))
    assert len(test) > 7
    assert not train & test


def test_each_cv_holds_what_it_recorded(usual: Dataset) -> None:
    assert usual.train_vehicles is not None
    table = experiment(data={"min_samples": 1}).data
    for cv, own in partition(usual, np.unique(usual.train_vehicles), table, np.random.default_rng(1)).items():
        assert (usual.train_vehicles[own] == cv).all()
    assert 0.1 < len(usual.test_targets) / (len(usual.test_targets) + len(usual.train_targets)) < 0.3


def test_samples_are_limited_as_in_other_data_sets(usual: Dataset) -> None:
    small = recorded(experiment(data={"train_samples": 50, "test_samples": 20}))
    assert (len(small.train_targets), len(small.test_targets)) == (50, 20)
    assert {one.tobytes() for one in small.test_inputs} <= {one.tobytes() for one in usual.test_inputs}


def test_the_seed_and_the_horizon_determine_the_data_and_the_scheme_does_not(usual: Dataset) -> None:
    same, seed = recorded(experiment(scheme={"kind": "fdpc"})), recorded(experiment(run={"seed": 2}))
    horizon = recorded(experiment(data={"horizon_s": 5}))
    assert np.array_equal(usual.train_inputs, same.train_inputs)
    assert np.array_equal(usual.test_targets, same.test_targets)
    assert not np.array_equal(usual.test_targets, seed.test_targets)
    assert np.hypot(*horizon.test_targets.T).mean() > np.hypot(*usual.test_targets.T).mean()


def test_the_rule_is_scored_on_the_test_set(usual: Dataset) -> None:
    own = ((constant_velocity(usual.test_inputs, 3).astype(float) - usual.test_targets) ** 2).mean()
    assert rule_mse(experiment().data, usual) == ("constant velocity", own)
    assert own > 0


def test_what_does_not_fit_is_one_sentence() -> None:
    with pytest.raises(ExperimentError) as refused:
        from_tables({"run": {"name": "defaults", "rounds": 2}, "data": {"kind": "positions"}})
    [problem] = refused.value.problems
    for fix in ('learning.loss = "mse"', 'data.partition = "own"', 'model.factory = "vefl_models.gru:gru"'):
        assert fix in problem


def test_too_little_traffic_is_one_sentence() -> None:
    e = experiment(run={"duration_s": 10.0}, traffic={"mean_in_coverage": 0.1, "warm_start": False})
    with pytest.raises(ExperimentError, match="record too little in 10 s"):
        recorded(e)
