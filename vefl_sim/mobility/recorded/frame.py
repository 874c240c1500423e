"""Frames: the vehicles of a recording at one time, with their places in the file for error messages."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from vefl_sim.core.arrays import Bools, Ints
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.parquet import Columns
from vefl_sim.mobility.scene import Scene

MAX_VEHICLES = 1_000_000  # at one time, and in a whole recording; at one time, they take 0.5 GB of memory
_LARGEST = 1e9  # metres or m/s


@dataclass(frozen=True)
class RecordingFile:
    """The file of a recording, and the unit of places in it."""

    path: Path
    unit: Literal["line", "row"]

    def problem(self, place: int, sentence: str) -> ExperimentError:
        """An error that names the file and the line or row."""
        return ExperimentError(f"{self.path}, {self.unit} {place}: {sentence}")


@dataclass(frozen=True)
class Frame:
    """One recorded scene, in the time and the coordinates of the recording."""

    scene: Scene
    begins: int  # line or row at which the frame begins
    place: Ints  # line or row of each vehicle


def frame(source: RecordingFile, scene: Scene, begins: int, place: Ints) -> Frame:
    """Make a frame from vehicles in any order; refuse duplicates and values that are not finite."""
    for name, values in (("x", scene.x_m), ("y", scene.y_m), ("speed", scene.speed_mps)):
        if (row := first(~np.isfinite(values))) is not None:
            message = f"{name} = {values[row]:g} is not a finite number: correct it, or drop the vehicle."
            raise source.problem(int(place[row]), message)
        if (row := first(np.abs(values) > _LARGEST)) is not None:
            message = f"{name} = {values[row]:g} is beyond {_LARGEST:g}: correct it, or drop the vehicle."
            raise source.problem(int(place[row]), message)
    order = np.argsort(scene.vehicle, kind="stable")
    scene, place = scene.rows(order), place[order]
    if (row := first(scene.vehicle[1:] == scene.vehicle[:-1])) is not None:
        message = f"the vehicle appears twice at {seconds(scene.time_ns)} s, first in {source.unit} {place[row]}"
        raise source.problem(int(place[row + 1]), f"{message}: keep one of the two.")
    return Frame(scene, begins, place)


def first(which: Bools) -> int | None:
    """Index of the first true entry, or None."""
    return int(np.argmax(which)) if which.any() else None


def seconds(time_ns: int) -> str:
    """Format a time in seconds for messages."""
    return f"{time_ns / 1e9:.10g}"


def too_many(source: RecordingFile, place: int) -> ExperimentError:
    """The error for more vehicles than a recording may have."""
    return source.problem(place, f"there are more than {MAX_VEHICLES} vehicles: cut the recording.")


def instants(source: RecordingFile, batches: Iterable[Columns], time: str) -> Iterator[Columns]:
    """Yield the columns of consecutive rows with the same time, also across the borders of batches."""
    pending: Columns = {}
    for batch in batches:
        columns = {name: np.concatenate((pending[name], batch[name])) for name in batch} if pending else batch
        cuts = np.flatnonzero(columns[time][1:] != columns[time][:-1]) + 1
        for start, end in pairwise((0, *cuts.tolist())):
            yield _select(columns, slice(start, end))
        pending = _select(columns, slice(int(cuts[-1]) if cuts.size else 0, None))
        if pending[time].size > MAX_VEHICLES:
            raise too_many(source, int(pending["row"][0]))
    if pending and pending[time].size:
        yield pending


def _select(columns: Columns, rows: slice) -> Columns:
    return {name: values[rows] for name, values in columns.items()}
