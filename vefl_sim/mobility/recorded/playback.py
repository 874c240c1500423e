"""Recorded traffic, played back: `mobility` tables of runs, SUMO's floating car data, and trajectories.

A trajectory is a `mobility` table with a row for every vehicle and step: all scenes of an external simulator, written
while it runs and played back to the last bit.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from vefl_sim.core.clock import to_ns, to_s
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import open_file
from vefl_sim.core.parquet import ColumnKind, ParquetFile
from vefl_sim.core.progress import report
from vefl_sim.core.rng import Streams
from vefl_sim.core.tables import TableWriter
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.coverage import at
from vefl_sim.mobility.recorded.fcd import table_scenes, xml_scenes
from vefl_sim.mobility.recorded.recording import Recording, VehicleNumbers, instants, ordered, plausible, seconds
from vefl_sim.mobility.scene import SCENE_SCHEMA, Mobility, Played, Scene

COMPLETE = "trajectory.parquet"
_END = "end_ns"  # key of the end time in the file's metadata, because empty streets leave no row
_KINDS: dict[str, ColumnKind] = {"int64": "integer", "float64": "number", "bool": "boolean"}
_NOBODY = Scene(0, np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0, np.bool_))


class Playback(Played):
    """Scenes of a recording at the time steps of the run (mobility.kind = "playback").

    At a recorded time the scene is the recorded one, to the last bit; in between it is interpolated. Only the two
    recorded ones around the current time are kept in memory.
    """

    def __init__(self, experiment: Experiment, streams: Streams) -> None:
        self._experiment = experiment
        super().__init__(to_ns(experiment.mobility.step_s), self._at_steps(self._in_run_time(self._recorded(streams))))

    def _at_steps(self, recorded: Iterator[Scene]) -> Iterator[Scene]:
        """The scenes at all steps; after the end of the run, the last one again, without reading further."""
        scene = before = after = next(recorded)
        for time_ns in range(0, self._experiment.duration_ns + self.step_ns, self.step_ns):
            while after.time_ns < time_ns and (following := next(recorded, None)):
                before, after = after, following
            scene = at(before, after, time_ns) if time_ns <= after.time_ns else replace(after, time_ns=time_ns)
            yield scene
        while True:
            scene = replace(scene, time_ns=scene.time_ns + self.step_ns)
            yield scene

    def _recorded(self, streams: Streams) -> Iterator[Scene]:
        """The recorded scenes, which are checked."""
        mobility, cv_share = self._experiment.mobility, self._experiment.traffic.cv_share
        path, register = recording_path(mobility.file), VehicleNumbers(streams, cv_share)
        marks_cvs = path.suffix.lower() == ".parquet" and is_own(ParquetFile(path))
        if cv_share != 1.0 and marks_cvs:
            raise ExperimentError(
                f'traffic.cv_share has no effect with mobility.file = "{mobility.file}", whose column `connected` '
                "marks the CVs: remove it."
            )
        recording = Recording(str(path), None if marks_cvs else register)
        return plausible(recorded_scenes(path, register), recording, mobility.max_speed_mps)

    def _in_run_time(self, recorded: Iterator[Scene]) -> Iterator[Scene]:
        """The recorded scenes in the time of the run, and with the gNB at (0, 0); they must last until its end."""
        e, mobility, first = self._experiment, self._experiment.mobility, next(recorded, None)
        if first is None:
            raise ExperimentError(f'mobility.file = "{mobility.file}": the recording is empty: choose another one.')
        start_ns = first.time_ns if mobility.start_s is None else to_ns(mobility.start_s)
        if start_ns < first.time_ns:
            raise ExperimentError(
                f"mobility.start_s = {mobility.start_s:.10g}: the recording begins at {seconds(first.time_ns)} s: "
                "start there or later."
            )
        (x_m, y_m), time_ns = mobility.origin_m or (0.0, 0.0), 0
        for scene in chain([first], recorded):
            time_ns = scene.time_ns - start_ns
            yield replace(scene, time_ns=time_ns, x_m=scene.x_m - x_m, y_m=scene.y_m - y_m)
        end = f"the recording ends at {seconds(time_ns + start_ns)} s"
        if time_ns < 0:
            raise ExperimentError(f"mobility.start_s = {mobility.start_s:.10g}: {end}: start earlier.")
        if time_ns < e.duration_ns:
            raise ExperimentError(
                f'mobility.file = "{mobility.file}": {end}, {seconds(time_ns)} s after the start of the run, which '
                f"lasts {seconds(e.duration_ns)} s: shorten the run, or record longer."
            )


def recording_path(file: str) -> Path:
    """The file that `mobility.file` names: the file itself, or the `mobility` table of a run directory."""
    table = Path(file) / "tables" / "mobility.parquet"
    if not Path(file).is_dir():
        return named_file(file, (".parquet", ".xml", ".xml.gz"), ".parquet, .xml or .xml.gz")
    if not table.is_file():
        raise ExperimentError(
            f'mobility.file = "{file}" is a directory, but not a run directory: it has no tables/mobility.parquet.'
        )
    return table


def named_file(file: str, endings: tuple[str, ...], formats: str) -> Path:
    """The file that `mobility.file` names; an error if there is none, or it has none of these endings."""
    path = Path(file)
    if not path.exists():
        raise ExperimentError(
            f'mobility.file = "{file}": there is no such file; relative paths start at the folder of the experiment\'s '
            "file, or where you start the run."
        )
    if not path.name.lower().endswith(endings):
        raise ExperimentError(f'mobility.file = "{file}" has an unknown format: it must be {formats}.')
    return path


def recording_digest(file: str) -> str:
    """SHA-256 of a recording; part of the run's name, so that an edited recording gives another run."""
    return digest_of(recording_path(file))


def digest_of(path: Path) -> str:
    """SHA-256 of a file; an ExperimentError if it cannot be read."""
    try:
        with open_file(path) as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise ExperimentError(f"{path} cannot be read: {error.strerror}.") from None


def recorded_scenes(path: Path, register: VehicleNumbers) -> Iterator[Scene]:
    """Iterate over the recorded scenes in the order of the file, reading lazily."""
    if path.suffix.lower() != ".parquet":
        return xml_scenes(path, register)
    table = ParquetFile(path)
    return own_scenes(table) if is_own(table) else table_scenes(table, register)


def trajectory(path: Path, step_ns: int) -> Played:
    """Plays back a trajectory file, with the time steps with which it was written."""
    return Played(step_ns, _at_steps(own_scenes(ParquetFile(path)), step_ns))


def _at_steps(scenes: Iterator[Scene], step_ns: int) -> Iterator[Scene]:
    """The scenes at all steps; a step without rows is a scene without vehicles."""
    scene = next(scenes, None)
    for time_ns in count(0, step_ns):
        if scene and scene.time_ns <= time_ns:
            yield scene
            scene = next(scenes, None)
        else:
            yield replace(_NOBODY, time_ns=time_ns)


def record(traffic: Mobility, path: Path, until_ns: int) -> None:
    """Write the traffic from now on, up to one step after `until_ns`, to a file that appears when it is complete.

    Only some thousand rows are kept in memory.
    """
    table, scene = TableWriter(path, SCENE_SCHEMA), traffic.scene()
    try:
        _append(table, scene)
        while scene.time_ns <= until_ns:  # the coverage process needs the scene one step ahead
            report("SUMO drives", to_s(scene.time_ns), to_s(until_ns))
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
