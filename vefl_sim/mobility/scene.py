"""The scene: positions and speeds of all vehicles, the only interface between mobility and the other packages."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

SCENE_SCHEMA = {
    "time_ns": "int64",
    "vehicle": "int64",
    "x_m": "float64",
    "y_m": "float64",
    "speed_mps": "float64",
    "connected": "bool",
}
"""Columns of scenes in files, with their Arrow types: in the table `mobility` of a run and in trajectories."""


@dataclass(frozen=True)
class Scene:
    """All vehicles at one time, in ascending order of their numbers; the gNB is at (0, 0)."""

    time_ns: int
    vehicle: NDArray[np.int64]
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    speed_mps: NDArray[np.float64]
    connected: NDArray[np.bool_]  # True for CVs; other vehicles only take part in the traffic

    def rows(self, places: NDArray[np.int64]) -> "Scene":
        """The scene reduced to these rows, in this order."""
        columns = {name: column[places] for name, column in vars(self).items() if name != "time_ns"}
        return Scene(time_ns=self.time_ns, **columns)

    def same_as(self, other: "Scene") -> bool:
        """Whether both scenes have equal values in all columns, to the last bit."""
        columns = zip(vars(self).values(), vars(other).values(), strict=True)
        return all(np.array_equal(own, others) for own, others in columns)


class Mobility(Protocol):
    """A source of scenes with a fixed time step; its users do not depend on its kind (IDM, SUMO, a recording)."""

    step_ns: int

    def scene(self) -> Scene:
        """The current scene; before the first step, the scene at time 0."""
        ...

    def advance(self) -> Scene:
        """Move all vehicles by one step and return the new scene."""
        ...


class Played:
    """A Mobility that returns given scenes, `step_ns` apart, one after the other."""

    def __init__(self, step_ns: int, scenes: Iterator[Scene]) -> None:
        self.step_ns, self._scenes = step_ns, scenes
        self._scene = next(scenes)

    def scene(self) -> Scene:
        """The current scene."""
        return self._scene

    def advance(self) -> Scene:
        """The next scene."""
        self._scene = next(self._scenes)
        return self._scene
