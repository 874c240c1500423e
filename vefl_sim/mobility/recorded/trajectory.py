"""Scenes on disk, exactly as they were: written while a simulator outside of ours drives, and played back.

The file is a `mobility` table with a row for every vehicle and step.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from vefl_sim.core.parquet import ParquetFile
from vefl_sim.core.state import State
from vefl_sim.core.tables import ColumnWriter
from vefl_sim.mobility.recorded.own_table import END, own_frames
from vefl_sim.mobility.scene import SCENE_SCHEMA, Mobility, Scene


class Tell(Protocol):
    """Hears how many of how many simulated seconds have been driven."""

    def __call__(self, done_s: float, of_s: float) -> None:
        """Hear it."""
        ...


COMPLETE, UNFINISHED = "trajectory.parquet", "unfinished.parquet"
_NONE = np.zeros(0)
_NOBODY = Scene(0, _NONE.astype(np.int64), _NONE, _NONE, _NONE, _NONE.astype(np.bool_))


class TrajectoryWriter:
    """Takes scene after scene; memory is that of some thousand rows."""

    def __init__(self, path: Path) -> None:
        self._columns = ColumnWriter(path, SCENE_SCHEMA)
        self._end_ns = 0
        self.is_empty = True

    def append(self, scene: Scene) -> None:
        """Write one scene down."""
        time_ns = np.full(scene.vehicle.size, scene.time_ns, np.int64)
        self._columns.append({**vars(scene), "time_ns": time_ns})
        self._end_ns, self.is_empty = scene.time_ns, False

    def close(self, path: Path | None = None) -> None:
        """It is complete, and gets its name; or `path` if it is not."""
        self._columns.close(path, {END: str(self._end_ns)})  # at which nobody may have been there

    def discard(self) -> None:
        """There shall be no such file."""
        self._columns.discard()


class Trajectory:
    """The scenes of a file, at the steps at which they were written."""

    def __init__(self, path: Path, step_ns: int) -> None:
        self.step_ns = step_ns
        self._scenes = _scenes(path)
        self._next = next(self._scenes, None)
        self._scene = self._at(0)

    def scene(self) -> Scene:
        """The current scene."""
        return self._scene

    def advance(self) -> Scene:
        """The next scene. A step without a row is one without a vehicle."""
        self._scene = self._at(self._scene.time_ns + self.step_ns)
        return self._scene

    def state(self) -> State:
        """How far it was played."""
        return {"time_ns": self._scene.time_ns}

    def restore(self, state: State) -> None:
        """Go on from there."""
        while self._scene.time_ns < state["time_ns"]:
            self.advance()

    def _at(self, time_ns: int) -> Scene:
        if self._next is None or self._next.time_ns > time_ns:
            return replace(_NOBODY, time_ns=time_ns)
        scene, self._next = self._next, next(self._scenes, None)
        return scene


def has_driven(folder: Path) -> bool:
    """Whether there is something in it that took its time."""
    return any((folder / name).exists() for name in (COMPLETE, UNFINISHED))


def record(traffic: Mobility, writer: TrajectoryWriter, until_ns: int) -> Iterator[int]:
    """Write the traffic down from now on, up to a step after a time; tells the time after every step."""
    writer.append(traffic.scene())
    while (before := traffic.scene().time_ns) <= until_ns:  # the streets look a step ahead
        writer.append(traffic.advance())
        yield before


def _scenes(path: Path) -> Iterator[Scene]:
    for frame in own_frames(ParquetFile(path)):
        yield frame.scene
