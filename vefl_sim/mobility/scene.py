"""Where everybody is: the one thing mobility tells the rest."""

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
"""Columns of scenes on disk, with their Arrow types: the table `mobility` of a run, and trajectories."""


@dataclass(frozen=True)
class Scene:
    """All vehicles at one instant, in ascending order of their number; the gNB is at (0, 0)."""

    time_ns: int
    vehicle: NDArray[np.int64]
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    speed_mps: NDArray[np.float64]
    connected: NDArray[np.bool_]  # True for CVs; the others only take part in the traffic

    def rows(self, places: NDArray[np.int64]) -> "Scene":
        """The same instant with only these rows, in this order."""
        return Scene(
            time_ns=self.time_ns,
            vehicle=self.vehicle[places],
            x_m=self.x_m[places],
            y_m=self.y_m[places],
            speed_mps=self.speed_mps[places],
            connected=self.connected[places],
        )

    def same_as(self, other: "Scene") -> bool:
        """Whether everybody is at the same place, to the last bit."""
        columns = zip(vars(self).values(), vars(other).values(), strict=True)
        return all(np.array_equal(mine, theirs) for mine, theirs in columns)


class Mobility(Protocol):
    """A source of scenes on a fixed step. What is behind it (IDM, SUMO, a recording) nobody else knows."""

    step_ns: int

    def scene(self) -> Scene:
        """The current scene; that of time 0 before the first step."""
        ...

    def advance(self) -> Scene:
        """Move everybody by one step and return the new scene."""
        ...
