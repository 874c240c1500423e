"""Playback of recorded traffic (mobility.kind = "playback"): a `mobility` table or SUMO's floating car data."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from vefl_sim.core.clock import to_ns
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.coverage import at
from vefl_sim.mobility.recorded.frame import Frame, seconds
from vefl_sim.mobility.recorded.plausible import plausible
from vefl_sim.mobility.recorded.recording import frames, has_connected, recording_path, source
from vefl_sim.mobility.recorded.register import VehicleNumbers
from vefl_sim.mobility.scene import Scene


class Playback:
    """Scenes of a recording at the time steps of the run.

    At a recorded time the scene is the recorded one, to the last bit; in between it is interpolated. Only the two
    frames around the current time are kept in memory.
    """

    def __init__(self, experiment: Experiment, streams: Streams) -> None:
        self._experiment = experiment
        self.step_ns = to_ns(experiment.mobility.step_s)
        self._frames = self._open_frames(streams)
        self._before = self._after = self._first_scene()
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

    def _open_frames(self, streams: Streams) -> Iterator[Frame]:
        mobility, cv_share = self._experiment.mobility, self._experiment.traffic.cv_share
        path = recording_path(mobility.file)
        if cv_share != 1.0 and has_connected(path):
            raise ExperimentError(
                f'traffic.cv_share has no effect with mobility.file = "{mobility.file}", whose column `connected` '
                "marks the CVs: remove it."
            )
        return plausible(frames(path, VehicleNumbers(streams, cv_share)), source(path), mobility.max_speed_mps)

    def _first_scene(self) -> Scene:
        """Read the first frame, determine which recorded time is time 0 of the run, and return the first scene."""
        first, mobility = next(self._frames, None), self._experiment.mobility
        if first is None:
            raise ExperimentError(f'mobility.file = "{mobility.file}": the recording is empty: choose another one.')
        begins_ns = first.scene.time_ns
        self._start_ns = begins_ns if mobility.start_s is None else to_ns(mobility.start_s)
        if self._start_ns < begins_ns:
            raise ExperimentError(
                f"mobility.start_s = {mobility.start_s:.10g}: the recording begins at {seconds(begins_ns)} s: "
                "start there or later."
            )
        self._frames = chain([first], self._frames)
        return self._next_scene()

    def _next_scene(self) -> Scene:
        """The next recorded scene, in the time of the run and with the gNB at (0, 0)."""
        scene, (x_m, y_m) = next(self._frames).scene, self._experiment.mobility.origin_m or (0.0, 0.0)
        return replace(scene, time_ns=scene.time_ns - self._start_ns, x_m=scene.x_m - x_m, y_m=scene.y_m - y_m)

    def _scene_at(self, time_ns: int) -> Scene:
        """The scene at a time that is not before the current one."""
        while self._after.time_ns < time_ns:
            try:
                self._before, self._after = self._after, self._next_scene()
            except StopIteration:
                return self._repeat_last(time_ns)
        return at(self._before, self._after, time_ns)

    def _repeat_last(self, time_ns: int) -> Scene:
        """The last recorded scene again, if only the step that ends after the run needs a later one."""
        if self._after.time_ns < min(time_ns, self._experiment.duration_ns):
            raise ExperimentError(self._too_short())
        return replace(self._after, time_ns=time_ns)

    def _too_short(self) -> str:
        """Error message for a recording that ends before the run."""
        e, available_ns = self._experiment, self._after.time_ns
        end = seconds(available_ns + self._start_ns)
        if available_ns < 0:
            return f"mobility.start_s = {e.mobility.start_s:.10g}: the recording ends at {end} s: start earlier."
        since = f", {seconds(available_ns)} s after its start" if self._start_ns else ""
        message = f'mobility.file = "{e.mobility.file}": the recording ends at {end} s{since}, the run lasts'
        return f"{message} {seconds(e.duration_ns)} s: {_shorten_advice(e, available_ns)}record longer."


def _shorten_advice(e: Experiment, available_ns: int) -> str:
    """Advice how to shorten the run to the recording; empty if not even one round fits."""
    if available_ns < e.round_ns:
        return ""
    if e.run.rounds is not None:
        return f"set run.rounds to at most {available_ns // e.round_ns}, or "
    return f"set run.duration_s to at most {seconds(available_ns)}, or "
