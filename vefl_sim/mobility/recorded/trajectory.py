"""`mobility` tables: those of runs, read as recordings, and trajectories.

A trajectory is such a table with a row for every vehicle and step: all scenes of an external simulator, written while
it runs and played back to the last bit.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vefl_sim.core.parquet import ColumnKind, ParquetFile
from vefl_sim.core.tables import TableWriter
from vefl_sim.mobility.recorded.recording import Recording, instants, ordered
from vefl_sim.mobility.scene import SCENE_SCHEMA, Mobility, Scene

COMPLETE = "trajectory.parquet"
_END = "end_ns"  # key of the end time in the file's metadata, because empty streets leave no row
_KINDS: dict[str, ColumnKind] = {"int64": "integer", "float64": "number", "bool": "boolean"}
_NOBODY = Scene(0, np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0, np.bool_))


class Trajectory:
    """Plays back a trajectory file, with the time steps with which it was written."""

    def __init__(self, path: Path, step_ns: int) -> None:
        self.step_ns = step_ns
        self._scenes = own_scenes(ParquetFile(path))
        self._next = next(self._scenes, None)
        self._scene = self._at(0)

    def scene(self) -> Scene:
        """The current scene."""
        return self._scene

    def advance(self) -> Scene:
        """The next scene; a step without rows is a scene without vehicles."""
        self._scene = self._at(self._scene.time_ns + self.step_ns)
        return self._scene

    def _at(self, time_ns: int) -> Scene:
        if self._next is None or self._next.time_ns > time_ns:
            return replace(_NOBODY, time_ns=time_ns)
        scene, self._next = self._next, next(self._scenes, None)
        return scene


def record(traffic: Mobility, path: Path, until_ns: int, on_step: Callable[[int], None] = lambda time_ns: None) -> None:
    """Write the traffic from now on, up to one step after `until_ns`, to a file that appears when it is complete.

    `on_step` is called with the start time of every step. Only some thousand rows are kept in memory.
    """
    table, scene = TableWriter(path, SCENE_SCHEMA), traffic.scene()
    try:
        _append(table, scene)
        while scene.time_ns <= until_ns:  # the coverage process needs the scene one step ahead
            on_step(scene.time_ns)
            scene = traffic.advance()
            _append(table, scene)
    except BaseException:
        table.discard()
        raise
    table.close(metadata={_END: str(scene.time_ns)})  # because the last scenes may have no rows


def _append(table: TableWriter, scene: Scene) -> None:
    table.extend({**vars(scene), "time_ns": np.full(scene.vehicle.size, scene.time_ns, np.int64)})


def is_own(table: ParquetFile) -> bool:
    """Whether the file is a `mobility` table, possibly with columns missing."""
    return "time_ns" in table.column_names


def own_scenes(table: ParquetFile) -> Iterator[Scene]:
    """Yield one scene per time, and empty ones at time 0 and at the end if there are no rows for them."""
    recording, columns = Recording(str(table.path)), {name: _KINDS[kind] for name, kind in SCENE_SCHEMA.items()}
    scene: Scene | None = None
    for values in instants(recording, table.batches(columns), "time_ns"):
        of_scene: dict[str, Any] = {name: values[name] for name in columns} | {"time_ns": int(values["time_ns"][0])}
        before, scene = scene, ordered(recording, Scene(**of_scene))
        if before is None and scene.time_ns > 0:
            yield _NOBODY
        yield scene
    noted = table.metadata.get(_END, "")
    if scene and noted.isdecimal() and int(noted) > scene.time_ns:
        yield replace(_NOBODY, time_ns=int(noted))
