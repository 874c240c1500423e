"""Recorded traffic, played back: our own `mobility` table or SUMO's floating car data."""

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
    """Scenes of a recording on the run's own steps.

    At a recorded instant the scene is the recorded one, to the last bit; in between it is interpolated. Only the two
    frames around the present are held.
    """

    def __init__(self, experiment: Experiment, streams: Streams) -> None:
        self._experiment = experiment
        self.step_ns = to_ns(experiment.mobility.step_s)
        self._frames = self._open(streams)
        self._before = self._after = self._first()
        self._scene = self._at(0)

    def scene(self) -> Scene:
        """The current scene."""
        return self._scene

    def advance(self) -> Scene:
        """The next scene. Once the run is over the last one stays, and nothing more is read."""
        time_ns = self._scene.time_ns + self.step_ns
        over = self._scene.time_ns >= self._experiment.duration_ns
        self._scene = replace(self._scene, time_ns=time_ns) if over else self._at(time_ns)
        return self._scene

    def _open(self, streams: Streams) -> Iterator[Frame]:
        mobility, cv_share = self._experiment.mobility, self._experiment.traffic.cv_share
        path = recording_path(mobility.file)
        if cv_share != 1.0 and has_connected(path):
            raise ExperimentError(
                f'traffic.cv_share has no effect with mobility.file = "{mobility.file}", which says itself who is '
                "connected: remove it."
            )
        return plausible(frames(path, VehicleNumbers(streams, cv_share)), source(path), mobility.max_speed_mps)

    def _first(self) -> Scene:
        """The first frame, and with it what time 0 of the run is."""
        first, mobility = next(self._frames, None), self._experiment.mobility
        if first is None:
            raise ExperimentError(f'mobility.file = "{mobility.file}": the recording is empty: record something.')
        begins_ns = first.scene.time_ns
        self._start_ns = begins_ns if mobility.start_s is None else to_ns(mobility.start_s)
        if self._start_ns < begins_ns:
            raise ExperimentError(
                f"mobility.start_s = {mobility.start_s:.10g}: the recording begins at {seconds(begins_ns)} s: "
                "start there or later."
            )
        self._frames = chain([first], self._frames)
        return self._next()

    def _next(self) -> Scene:
        """The next frame in the run's time, around its gNB."""
        scene, (x_m, y_m) = next(self._frames).scene, self._experiment.mobility.origin_m or (0.0, 0.0)
        return replace(scene, time_ns=scene.time_ns - self._start_ns, x_m=scene.x_m - x_m, y_m=scene.y_m - y_m)

    def _at(self, time_ns: int) -> Scene:
        """The scene at a time that is not before the present."""
        while self._after.time_ns < time_ns:
            try:
                self._before, self._after = self._after, self._next()
            except StopIteration:
                return self._after_the_last(time_ns)
        return at(self._before, self._after, time_ns)

    def _after_the_last(self, time_ns: int) -> Scene:
        """The last frame again, if only the step that ends after the run asks for more."""
        if self._after.time_ns < min(time_ns, self._experiment.duration_ns):
            raise ExperimentError(self._too_short())
        return replace(self._after, time_ns=time_ns)

    def _too_short(self) -> str:
        e, left_ns = self._experiment, self._after.time_ns
        end = seconds(left_ns + self._start_ns)
        if left_ns < 0:
            return f"mobility.start_s = {e.mobility.start_s:.10g}: the recording ends at {end} s: start before."
        since = f", {seconds(left_ns)} s after its start" if self._start_ns else ""
        message = f'mobility.file = "{e.mobility.file}": the recording ends at {end} s{since}, the run lasts'
        return f"{message} {seconds(e.duration_ns)} s: {_shortened(e, left_ns)}record longer."


def _shortened(e: Experiment, left_ns: int) -> str:
    """How to make the run fit, if a round does."""
    if left_ns < e.round_ns:
        return ""
    if e.run.rounds is not None:
        return f"set run.rounds to at most {left_ns // e.round_ns}, or "
    return f"set run.duration_s to at most {seconds(left_ns)}, or "
