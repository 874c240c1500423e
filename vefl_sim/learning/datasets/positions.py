"""`positions`: where a CV will be in a few seconds, learnt from the traffic of the run itself; no files.

The CVs of a run record position and speed, once per second while they are in coverage. A sample is what a CV has just
recorded, and where it is some seconds later. Positions are relative to the current one and turned to the CV's heading:
x is ahead, y is to the left. Lengths are in units of 10 m and speeds in 10 m/s, so that the numbers are near 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.clock import to_s
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.progress import report
from vefl_sim.experiment.experiment import DataTable, Experiment
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.kinds import RecordedKind, Subsets
from vefl_sim.mobility.coverage import at, in_coverage
from vefl_sim.mobility.scene import Mobility, Scene

if TYPE_CHECKING:
    import pandas as pd

HISTORY_S = 4
"""A CV looks back this long: positions at 0, −1, …, −4 s."""
FEATURES = 3
"""Numbers per recorded second: x, y, speed."""
UNIT_M = 10.0
_PIECE = 4  # a track is cut into pieces of this many sample lengths
_SECOND_NS = 1_000_000_000
_MOVED_M = 0.5  # a shorter way within a second does not tell a heading
_TEST_SHARE = 5  # one piece in five is for the test set


def record(mobility: Mobility, radius_m: float, duration_ns: int) -> "pd.DataFrame":
    """Record all CVs in the circle, each second until `duration_ns`; advances `mobility`, so pass one of your own.

    One row per position, by CV and then by time. A track is a CV's record without a gap in time: `track` numbers them,
    and `place` is the number of seconds since the start of the track.
    """
    import pandas as pd  # slow to import, and not needed with other data

    scenes = _each_second(mobility, radius_m, duration_ns)
    columns = ("vehicle", "x_m", "y_m", "speed_mps")
    rows = pd.DataFrame({name: np.concatenate([getattr(scene, name) for scene in scenes]) for name in columns})
    rows["second"] = np.repeat(np.arange(len(scenes)), [len(scene.vehicle) for scene in scenes])
    rows = rows.sort_values(["vehicle", "second"], ignore_index=True)
    rows["track"] = ((rows["vehicle"].diff() != 0) | (rows["second"].diff() != 1)).cumsum() - 1
    rows["place"] = rows.groupby("track").cumcount()
    return rows


def headings(tracks: "pd.DataFrame") -> NDArray[np.float64]:
    """Direction of the CV's last movement, as a unit vector, [positions, 2]; nan before its first in the track."""
    step_m = tracks.groupby("track")[["x_m", "y_m"]].diff()
    length_m = np.hypot(step_m["x_m"], step_m["y_m"])
    ahead = step_m.div(length_m, axis=0)[length_m >= _MOVED_M].reindex(tracks.index)
    return ahead.groupby(tracks["track"]).ffill().to_numpy()


def _each_second(mobility: Mobility, radius_m: float, duration_ns: int) -> list[Scene]:
    """The CVs in the circle at 0 s, 1 s, …; interpolated where the traffic has no scene at that time."""
    scene, seconds = mobility.scene(), range(0, duration_ns + 1, _SECOND_NS)
    before, scenes = scene, []
    for time_ns in seconds:
        while scene.time_ns < time_ns:
            before, scene = scene, mobility.advance()
        report("recording positions", to_s(time_ns), to_s(duration_ns))
        now = at(before, scene, time_ns)
        scenes.append(now.rows(np.flatnonzero(np.isin(now.vehicle, in_coverage(now, radius_m)))))
    return scenes


@dataclass(frozen=True)
class Samples:
    """Samples in the order of the tracks; those of one piece share positions, those of different pieces share none."""

    inputs: NDArray[np.float32]  # [samples, HISTORY_S + 1, FEATURES], the oldest first
    targets: NDArray[np.float32]  # [samples, 2], displacement x, y
    vehicle: NDArray[np.int64]  # [samples]
    piece: NDArray[np.int64]  # [samples]

    @classmethod
    def of(cls, tracks: "pd.DataFrame", horizon_s: int) -> "Samples":
        """All samples with this horizon, one for each second of a track that has its past and its future in its piece.

        A piece is a stretch of 4·(HISTORY_S + horizon) seconds of a track, or what is left of the track.
        """
        length = HISTORY_S + horizon_s
        piece = tracks.groupby(["track", tracks["place"] // (_PIECE * length)]).ngroup().to_numpy()
        xy_m, speed_mps, headed = tracks[["x_m", "y_m"]].to_numpy(), tracks["speed_mps"].to_numpy(), headings(tracks)
        first = np.arange(max(len(piece) - length, 0))
        now, last = first + HISTORY_S, first + length
        usable = (piece[first] == piece[last]) & np.isfinite(headed[now, 0])
        first, now, last = first[usable], now[usable], last[usable]
        past = first[:, None] + np.arange(HISTORY_S + 1)
        origin_m, ahead = xy_m[now], headed[now]
        ways = _turned(xy_m[past] - origin_m[:, None], ahead[:, None])
        inputs = np.concatenate([ways, speed_mps[past][..., None]], axis=2)
        targets = _turned(xy_m[last] - origin_m, ahead)
        return cls(_scaled(inputs), _scaled(targets), tracks["vehicle"].to_numpy()[now], piece[now])


def constant_velocity(inputs: NDArray[np.float32], horizon_s: int) -> NDArray[np.float32]:
    """Displacements of CVs that keep their speed and heading, [samples, 2], in the units of the targets."""
    ahead = inputs[:, -1, 2] * np.float32(horizon_s)
    return np.stack([ahead, np.zeros_like(ahead)], axis=1)


def _scaled(metres: NDArray[np.float64]) -> NDArray[np.float32]:
    return (metres / UNIT_M).astype(np.float32)


def _turned(way: NDArray[np.float64], ahead: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors [..., 2] in the frame of a unit vector: the part along it, and that to its left."""
    along = (way * ahead).sum(axis=-1)
    left = way[..., 1] * ahead[..., 0] - way[..., 0] * ahead[..., 1]
    return np.stack([along, left], axis=-1)


def _positions(experiment: Experiment, rng: np.random.Generator, mobility: Mobility) -> Dataset:
    """Record all CVs in coverage and cut their tracks into samples; whole pieces of tracks are for the test set."""
    data, radius_m = experiment.data, experiment.radio.coverage_radius_m
    subsets = Subsets(data, rng)
    samples = Samples.of(record(mobility, radius_m, experiment.duration_ns), data.horizon_s)
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
    """The defaults are for images with classes."""
    needed = {
        'learning.loss = "mse"': e.learning.loss == "cross-entropy",
        'data.partition = "own" (each CV holds what it has recorded) or "iid"': (
            e.data.partition in ("dirichlet", "shards")
        ),
        'model.factory = "vefl_models.gru:gru" or "vefl_models.mlp:mlp"': e.model.factory == "vefl_models.cnn:cnn",
    }
    if wrong := [setting for setting, is_wrong in needed.items() if is_wrong]:
        yield f'data.kind = "positions" has no images and no classes: set {", and ".join(wrong)}.'


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
