"""What a recording has of one instant, and where in the file it is."""

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


@dataclass(frozen=True)
class RecordingFile:
    """A file, and what its entries are counted in."""

    path: Path
    unit: Literal["line", "row"]

    def problem(self, place: int, sentence: str) -> ExperimentError:
        """An error that says where."""
        return ExperimentError(f"{self.path}, {self.unit} {place}: {sentence}")


@dataclass(frozen=True)
class Frame:
    """One recorded instant, in the time and the coordinates of the recording."""

    scene: Scene
    begins: int  # the line or row at which it begins
    place: Ints  # the line or row of each vehicle


def frame(source: RecordingFile, scene: Scene, begins: int, place: Ints) -> Frame:
    """A frame from vehicles in any order, each of which is there once and somewhere."""
    for name, values in (("x", scene.x_m), ("y", scene.y_m), ("speed", scene.speed_mps)):
        if (row := first(~np.isfinite(values))) is not None:
            message = f"{name} = {values[row]:g} is not a finite number: correct it, or drop the vehicle."
            raise source.problem(int(place[row]), message)
    order = np.argsort(scene.vehicle, kind="stable")
    scene, place = scene.rows(order), place[order]
    if (row := first(scene.vehicle[1:] == scene.vehicle[:-1])) is not None:
        message = f"the vehicle is there twice at {seconds(scene.time_ns)} s, first in {source.unit} {place[row]}"
        raise source.problem(int(place[row + 1]), f"{message}: keep one of the two.")
    return Frame(scene, begins, place)


def first(which: Bools) -> int | None:
    """The first row for which it is true, if there is one."""
    return int(np.argmax(which)) if which.any() else None


def seconds(time_ns: int) -> str:
    """A time for people."""
    return f"{time_ns / 1e9:.10g}"


def instants(batches: Iterable[Columns], time: str) -> Iterator[Columns]:
    """The columns of consecutive rows with the same time, wherever batches begin and end."""
    held: Columns = {}
    for batch in batches:
        columns = {name: np.concatenate((held[name], batch[name])) for name in batch} if held else batch
        cuts = np.flatnonzero(columns[time][1:] != columns[time][:-1]) + 1
        for start, end in pairwise((0, *cuts.tolist())):
            yield _part(columns, slice(start, end))
        held = _part(columns, slice(int(cuts[-1]) if cuts.size else 0, None))
    if held and held[time].size:
        yield held


def _part(columns: Columns, rows: slice) -> Columns:
    return {name: values[rows] for name, values in columns.items()}
