"""Recordings: the numbers of their vehicles, and the checks that their scenes have to pass.

Times must increase, and vehicles must neither be too fast nor jump.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vefl_sim.core.arrays import Bools, Floats, Ints
from vefl_sim.core.errors import BadInput, ExperimentError
from vefl_sim.core.parquet import Columns
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.complaints import shortened
from vefl_sim.mobility.scene import Scene

MAX_VEHICLES = 1_000_000  # at one time, and in a whole recording; at one time, they take 0.5 GB of memory
_LARGEST = 1e9  # metres or m/s
_SPEED_TOLERANCE_MPS = 0.01  # because recordings are rounded
_SIDESTEP_M = 10.0  # SUMO changes lanes instantly

LastSeen = tuple[int, float, float]  # time, x, y


class VehicleNumbers:
    """Assigns the numbers 1, 2, … to vehicles in the order in which they first appear.

    Whether vehicle i is connected is the first draw of its own stream ("traffic", i), as in the built-in traffic.
    """

    def __init__(self, streams: Streams, cv_share: float) -> None:
        self._streams, self._cv_share = streams, cv_share
        self._numbers: dict[str, int] = {}
        self._connected = bytearray()

    def numbers(self, names: Sequence[str]) -> Ints:
        """Numbers of the vehicles with these names; new vehicles get the next free numbers."""
        return np.array([self._numbers.get(name) or self._add(name) for name in names], np.int64)

    def name(self, number: int) -> str:
        """Name of the vehicle with this number."""
        return list(self._numbers)[number - 1]

    def connected(self, numbers: Ints) -> Bools:
        """Which of the vehicles with these numbers are CVs."""
        return np.asarray(self._connected)[numbers - 1].view(np.bool_)

    def _add(self, name: str) -> int:
        if len(self._numbers) == MAX_VEHICLES:
            raise ExperimentError(f"There are more than {MAX_VEHICLES} vehicles: choose a shorter part of the traffic.")
        number = self._numbers[name] = len(self._numbers) + 1
        self._connected.append(self._streams.generator("traffic", number).random() < self._cv_share)
        return number


@dataclass(frozen=True)
class Recording:
    """A recording, or SUMO while it drives: how it is called in error messages, and the names of its vehicles."""

    name: str
    register: VehicleNumbers | None = None  # None if vehicles are called by their numbers

    def problem(self, scene: Scene, row: int, sentence: str) -> ExperimentError:
        """An error that names a vehicle of a scene."""
        number = int(scene.vehicle[row])
        vehicle = shortened(self.register.name(number)) if self.register else number
        return ExperimentError(f"{self.name}, vehicle {vehicle} at {seconds(scene.time_ns)} s: {sentence}")

    def too_many(self) -> ExperimentError:
        """The error for more vehicles than a recording may have."""
        return ExperimentError(f"{self.name}: there are more than {MAX_VEHICLES} vehicles: cut the recording.")


def ordered(recording: Recording, scene: Scene) -> Scene:
    """The scene of vehicles in any order; refuse duplicates and values that are not finite."""
    for name, values in (("x", scene.x_m), ("y", scene.y_m), ("speed", scene.speed_mps)):
        if (row := first(~(np.abs(values) <= _LARGEST))) is not None:
            fault = f"beyond {_LARGEST:g}" if np.isfinite(values[row]) else "not a finite number"
            raise recording.problem(
                scene, row, f"{name} = {values[row]:g} is {fault}: correct it, or drop the vehicle."
            )
    scene = scene.rows(np.argsort(scene.vehicle, kind="stable"))
    if (row := first(scene.vehicle[1:] == scene.vehicle[:-1])) is not None:
        raise recording.problem(scene, row, "it appears twice: keep one of the two.")
    return scene


def first(which: Bools) -> int | None:
    """Index of the first true entry, or None."""
    return int(np.argmax(which)) if which.any() else None


def seconds(time_ns: int) -> str:
    """Format a time in seconds for messages."""
    return f"{time_ns / 1e9:.10g}"


def instants(recording: Recording, batches: Iterable[Columns], time: str) -> Iterator[Columns]:
    """Yield the columns of consecutive rows with the same time, also across the borders of batches."""
    pending: Columns = {}
    for batch in batches:
        columns = {name: np.concatenate((pending[name], batch[name])) for name in batch} if pending else batch
        cuts = np.flatnonzero(columns[time][1:] != columns[time][:-1]) + 1
        pieces = pairwise((0, *cuts.tolist(), None))
        *complete, pending = ({name: values[start:end] for name, values in columns.items()} for start, end in pieces)
        yield from complete
        if pending[time].size > MAX_VEHICLES:
            raise recording.too_many()
    if pending and pending[time].size:
        yield pending


def plausible(scenes: Iterator[Scene], recording: Recording, max_speed_mps: float) -> Iterator[Scene]:
    """Yield the scenes unchanged, or raise an error at the first implausible one."""
    motion = Motion(recording, max_speed_mps)
    for scene in scenes:
        motion.check(scene, scenes)
        yield scene


class Motion:
    """Checks scenes one after the other: time goes on, and no vehicle reverses, is faster than u_max, or jumps.

    A jump is a way that is `sidestep_m` longer than u_max allows. Keeps the last position of every vehicle that left,
    so memory grows with the number of vehicles, not with the time.
    """

    def __init__(self, recording: Recording, max_speed_mps: float, sidestep_m: float = _SIDESTEP_M) -> None:
        self._recording, self._max_speed_mps, self._sidestep_m = recording, max_speed_mps, sidestep_m
        self._before: Scene | None = None
        self._gone: dict[int, LastSeen] = {}

    def check(self, scene: Scene, later: Iterable[Scene] = ()) -> None:
        """Refuse an implausible scene; the highest speed that is too high is also looked for in `later` ones."""
        before, self._before = self._before, scene
        self._check_speeds(scene, later)
        if not before:
            return
        if scene.time_ns <= before.time_ns:
            raise ExperimentError(
                f"{self._recording.name}: time {seconds(scene.time_ns)} s follows {seconds(before.time_ns)} s: sort "
                "the recording by time, with each time once."
            )
        self._check_jumps(before, scene)
        if len(self._gone) > MAX_VEHICLES:
            raise self._recording.too_many()

    def _check_speeds(self, scene: Scene, later: Iterable[Scene]) -> None:
        if (row := first(scene.speed_mps < 0)) is not None:
            message = f"speed = {scene.speed_mps[row]:.10g} m/s is negative: write it as 0 or more."
            raise self._recording.problem(scene, row, message)
        row = first(scene.speed_mps > self._max_speed_mps + _SPEED_TOLERANCE_MPS)
        if row is None:
            return
        fastest_mps = float(scene.speed_mps.max())
        with suppress(BadInput):  # report one error at a time
            for other in later:
                fastest_mps = max(fastest_mps, float(other.speed_mps.max(initial=0.0)))
        raise self._recording.problem(
            scene,
            row,
            f"speed = {scene.speed_mps[row]:.10g} m/s is above mobility.max_speed_mps = {self._max_speed_mps:g}: raise "
            f"mobility.max_speed_mps to at least {math.ceil(fastest_mps * 100) / 100:g}, because the sojourn bound "
            "relies on it.",
        )

    def _check_jumps(self, before: Scene, now: Scene) -> None:
        time_ns, x_m, y_m = self._last_seen(before, now)
        elapsed_s = (now.time_ns - time_ns) / 1e9
        distance_m = np.hypot(now.x_m - x_m, now.y_m - y_m)
        row = first(distance_m > self._max_speed_mps * elapsed_s + self._sidestep_m)  # NaN is never greater
        if row is not None:
            raise self._recording.problem(
                now,
                row,
                f"it is {distance_m[row]:.1f} m from where it was {elapsed_s[row]:.10g} s before, farther than "
                f"mobility.max_speed_mps = {self._max_speed_mps:g} allows: use traffic without jumps and teleports.",
            )

    def _last_seen(self, before: Scene, now: Scene) -> Floats:
        """(3, vehicles): time, x and y of the previous record of each vehicle; NaN for newcomers."""
        for row in np.flatnonzero(~np.isin(before.vehicle, now.vehicle, assume_unique=True)).tolist():
            self._gone[int(before.vehicle[row])] = before.time_ns, float(before.x_m[row]), float(before.y_m[row])
        previous = np.full((3, now.vehicle.size), np.nan)
        _, old, new = np.intersect1d(before.vehicle, now.vehicle, assume_unique=True, return_indices=True)
        previous[:, new] = np.full(old.size, float(before.time_ns)), before.x_m[old], before.y_m[old]
        for row in np.flatnonzero(np.isnan(previous[0])).tolist():
            previous[:, row] = self._gone.pop(int(now.vehicle[row]), (np.nan, np.nan, np.nan))
        return previous
