"""What a recording has of one instant, and where in the file it is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from vefl_sim.core.errors import ExperimentError
from vefl_sim.mobility.arrays import BoolArray, IntArray
from vefl_sim.mobility.scene import Scene


@dataclass(frozen=True)
class Source:
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
    place: IntArray  # the line or row of each vehicle


def frame(source: Source, scene: Scene, begins: int, place: IntArray) -> Frame:
    """A frame from vehicles in any order, each of which is there once and somewhere."""
    for name, values in (("x", scene.x_m), ("y", scene.y_m), ("speed", scene.speed_mps)):
        if (row := first(~np.isfinite(values))) is not None:
            told = f"{name} = {values[row]:g} is not a finite number: correct it, or drop the vehicle."
            raise source.problem(int(place[row]), told)
    order = np.argsort(scene.vehicle, kind="stable")
    scene, place = scene.rows(order), place[order]
    if (row := first(scene.vehicle[1:] == scene.vehicle[:-1])) is not None:
        told = f"the vehicle is there twice at {seconds(scene.time_ns)} s, first in {source.unit} {place[row]}"
        raise source.problem(int(place[row + 1]), f"{told}: keep one of the two.")
    return Frame(scene, begins, place)


def first(which: BoolArray) -> int | None:
    """The first row for which it is true, if there is one."""
    return int(np.argmax(which)) if which.any() else None


def seconds(time_ns: int) -> str:
    """A time for people."""
    return f"{time_ns / 1e9:.10g}"
