"""Playback of recorded traffic (mobility.kind = "playback"): a `mobility` table or SUMO's floating car data."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from vefl_sim.core.clock import to_ns
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import open_file
from vefl_sim.core.parquet import ParquetFile
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.coverage import at
from vefl_sim.mobility.recorded.fcd import table_scenes, xml_scenes
from vefl_sim.mobility.recorded.recording import Recording, VehicleNumbers, plausible, seconds
from vefl_sim.mobility.recorded.trajectory import is_own, own_scenes
from vefl_sim.mobility.scene import Scene


class Playback:
    """Scenes of a recording at the time steps of the run.

    At a recorded time the scene is the recorded one, to the last bit; in between it is interpolated. Only the two
    recorded ones around the current time are kept in memory.
    """

    def __init__(self, experiment: Experiment, streams: Streams) -> None:
        self._experiment = experiment
        self.step_ns = to_ns(experiment.mobility.step_s)
        self._scenes = self._in_run_time(self._recorded(streams))
        self._before = self._after = next(self._scenes)
        self._scene = self._scene_at(0)

    def scene(self) -> Scene:
        """The current scene."""
        return self._scene

    def advance(self) -> Scene:
        """The next scene; after the end of the run, the last one again, without reading further."""
        time_ns = self._scene.time_ns + self.step_ns
        over = self._scene.time_ns >= self._experiment.duration_ns
        self._scene = replace(self._scene, time_ns=time_ns) if over else self._scene_at(time_ns)
        return self._scene

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
        """The recorded scenes in the time of the run, and with the gNB at (0, 0)."""
        first, mobility = next(recorded, None), self._experiment.mobility
        if first is None:
            raise ExperimentError(f'mobility.file = "{mobility.file}": the recording is empty: choose another one.')
        self._start_ns = first.time_ns if mobility.start_s is None else to_ns(mobility.start_s)
        if self._start_ns < first.time_ns:
            raise ExperimentError(
                f"mobility.start_s = {mobility.start_s:.10g}: the recording begins at {seconds(first.time_ns)} s: "
                "start there or later."
            )
        x_m, y_m = mobility.origin_m or (0.0, 0.0)
        for scene in chain([first], recorded):
            time_ns = scene.time_ns - self._start_ns
            yield replace(scene, time_ns=time_ns, x_m=scene.x_m - x_m, y_m=scene.y_m - y_m)

    def _scene_at(self, time_ns: int) -> Scene:
        """The scene at a time that is not before the current one."""
        while self._after.time_ns < time_ns:
            following = next(self._scenes, None)
            if following is None:
                if self._after.time_ns < min(time_ns, self._experiment.duration_ns):
                    raise ExperimentError(self._too_short())
                return replace(self._after, time_ns=time_ns)  # only the step that ends after the run needs a later one
            self._before, self._after = self._after, following
        return at(self._before, self._after, time_ns)

    def _too_short(self) -> str:
        """Error message for a recording that ends before the run."""
        e, available_ns = self._experiment, self._after.time_ns
        end = seconds(available_ns + self._start_ns)
        if available_ns < 0:
            return f"mobility.start_s = {e.mobility.start_s:.10g}: the recording ends at {end} s: start earlier."
        return (
            f'mobility.file = "{e.mobility.file}": the recording ends at {end} s, {seconds(available_ns)} s after the '
            f"start of the run, which lasts {seconds(e.duration_ns)} s: shorten the run, or record longer."
        )


def recording_path(file: str) -> Path:
    """The file that `mobility.file` names: the file itself, or the `mobility` table of a run directory."""
    path = Path(file)
    table = path / "tables" / "mobility.parquet"
    if path.is_dir() and not table.is_file():
        raise ExperimentError(
            f'mobility.file = "{file}" is a directory, but not a run directory: it has no tables/mobility.parquet.'
        )
    if not path.exists():
        where = "relative paths start at the folder of the experiment's file, or where you start the run"
        raise ExperimentError(f'mobility.file = "{file}": there is no such file or run directory; {where}.')
    return table if path.is_dir() else path


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
    name = path.name.lower()
    if name.endswith((".xml", ".xml.gz")):
        return xml_scenes(path, register)
    if not name.endswith(".parquet"):
        raise ExperimentError(
            f'mobility.file = "{path}" has an unknown format: it must end in .parquet, .xml or .xml.gz.'
        )
    table = ParquetFile(path)
    return own_scenes(table) if is_own(table) else table_scenes(table, register)
