"""`data.kind = "positions"`: predict where a CV will be, from the traffic of the run itself; no files."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.clock import to_s
from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.learning_tables import DataTable
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.kinds import RecordedKind
from vefl_sim.learning.datasets.positions.samples import FEATURES, HISTORY_S, Samples, constant_velocity
from vefl_sim.learning.datasets.positions.tracks import Tracks
from vefl_sim.learning.datasets.subset import Subsets
from vefl_sim.mobility.scene import Mobility

_TEST_SHARE = 5  # one piece in five is for the test set


def _positions(experiment: Experiment, rng: np.random.Generator, mobility: Mobility) -> Dataset:
    """Record all CVs in coverage and cut their tracks into samples; whole pieces of tracks are for the test set."""
    data, radius_m = experiment.data, experiment.radio.coverage_radius_m
    subsets = Subsets(data, rng)
    samples = Samples.of(Tracks.recorded(mobility, radius_m, experiment.duration_ns), data.horizon_s)
    is_test = _drawn(samples.piece, rng)
    if not is_test.any():
        raise ExperimentError(
            f'data.kind = "positions": the CVs in coverage record too little in {to_s(experiment.duration_ns):g} s for '
            f"a training and a test set with data.horizon_s = {data.horizon_s}: make the run longer, or the horizon "
            "shorter."
        )
    train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    train, test = train[subsets.train(len(train))], test[subsets.test(len(test))]
    return Dataset(
        "positions", samples.inputs[train], samples.targets[train], samples.inputs[test], samples.targets[test],
        train_groups=samples.piece[train], train_vehicles=samples.vehicle[train],
    )  # fmt: skip


def _drawn(piece: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which samples are for the test set: those of a random fifth of the pieces; none if there is only one piece."""
    pieces = np.unique(piece)
    count = -(-len(pieces) // _TEST_SHARE) if len(pieces) > 1 else 0
    return np.isin(piece, rng.permutation(pieces)[:count])


def _example(data: DataTable) -> Dataset:
    inputs, targets = np.zeros((1, HISTORY_S + 1, FEATURES), np.float32), np.zeros((1, 2), np.float32)
    return Dataset("positions", inputs, targets, inputs, targets)


def _contradictions(e: Experiment) -> Iterator[str]:
    needed_s = HISTORY_S + e.data.horizon_s
    if to_s(e.duration_ns) < needed_s:
        yield (
            f'The run lasts {to_s(e.duration_ns):g} s, and a sample of data.kind = "positions" {needed_s} s '
            f"({HISTORY_S} s and data.horizon_s = {e.data.horizon_s}): make the run longer."
        )
    if e.learning.loss == "cross-entropy":
        yield (
            'learning.loss = "cross-entropy" does not fit data.kind = "positions", whose targets are numbers: set '
            'learning.loss = "mse".'
        )
    if e.data.partition in ("dirichlet", "shards"):
        yield (
            f'data.partition = "{e.data.partition}" splits by class, and data.kind = "positions" has none: set '
            'data.partition = "own", with which each CV holds what it has recorded, or "iid".'
        )
    if e.model.factory == "vefl_models.cnn:cnn":
        yield (
            'model.factory = "vefl_models.cnn:cnn" takes images, and data.kind = "positions" has none: set '
            'model.factory = "vefl_models.gru:gru" or "vefl_models.mlp:mlp".'
        )


POSITIONS = RecordedKind(
    make=_positions,
    unused_keys=("data.dir", "data.image_px", "data.holders"),
    contradictions=_contradictions,
    train_samples=5000,
    test_samples=1000,
    side_px=4,
    channels=1,
    example=_example,
    rule=lambda data, inputs: constant_velocity(inputs, data.horizon_s),
    rule_name="constant velocity",
)
