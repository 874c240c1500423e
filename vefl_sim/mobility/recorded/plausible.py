"""Checks of recorded frames: times must increase, and vehicles must neither be too fast nor jump."""

import math
from collections.abc import Iterator

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import BadInput, ExperimentError
from vefl_sim.mobility.recorded.frame import MAX_VEHICLES, Frame, RecordingFile, first, seconds, too_many
from vefl_sim.mobility.scene import Scene

_SPEED_TOLERANCE_MPS = 0.01  # because recordings are rounded
_SIDESTEP_M = 10.0  # SUMO changes lanes instantly

LastSeen = tuple[int, float, float]  # time, x, y


def plausible(frames: Iterator[Frame], source: RecordingFile, max_speed_mps: float) -> Iterator[Frame]:
    """Yield the frames unchanged, or raise an error at the first implausible one.

    Keeps the last position of every vehicle that left, so memory grows with the number of vehicles, not with the time.
    """
    before: Frame | None = None
    gone: dict[int, LastSeen] = {}
    for frame in frames:
        if (row := first(frame.scene.speed_mps < 0)) is not None:
            message = f"speed = {frame.scene.speed_mps[row]:.10g} m/s is negative: write it as 0 or more."
            raise source.problem(int(frame.place[row]), message)
        if (row := first(frame.scene.speed_mps > max_speed_mps + _SPEED_TOLERANCE_MPS)) is not None:
            raise _too_fast(frame, row, source, max_speed_mps, _fastest_mps(frame, frames))
        if before:
            _check_time(before.scene, frame, source)
            if len(gone) > MAX_VEHICLES:
                raise too_many(source, frame.begins)
            _check_jumps(_last_seen(before.scene, frame.scene, gone), frame, source, max_speed_mps)
        before = frame
        yield frame


def _check_time(before: Scene, frame: Frame, source: RecordingFile) -> None:
    if frame.scene.time_ns <= before.time_ns:
        raise source.problem(
            frame.begins,
            f"time {seconds(frame.scene.time_ns)} s follows {seconds(before.time_ns)} s: sort the recording by time, "
            "with each time once.",
        )


def _last_seen(before: Scene, now: Scene, gone: dict[int, LastSeen]) -> Floats:
    """(3, vehicles): time, x and y of the previous record of each vehicle; NaN for newcomers."""
    left = np.flatnonzero(~np.isin(before.vehicle, now.vehicle, assume_unique=True)).tolist()
    for row in left:
        gone[int(before.vehicle[row])] = (before.time_ns, float(before.x_m[row]), float(before.y_m[row]))
    previous = np.full((3, now.vehicle.size), np.nan)
    _, old, new = np.intersect1d(before.vehicle, now.vehicle, assume_unique=True, return_indices=True)
    previous[:, new] = np.full(old.size, float(before.time_ns)), before.x_m[old], before.y_m[old]
    for row in np.flatnonzero(np.isnan(previous[0])).tolist():
        previous[:, row] = gone.pop(int(now.vehicle[row]), (np.nan, np.nan, np.nan))
    return previous


def _check_jumps(previous: Floats, frame: Frame, source: RecordingFile, max_speed_mps: float) -> None:
    now = frame.scene
    elapsed_s = (now.time_ns - previous[0]) / 1e9
    distance_m = np.hypot(now.x_m - previous[1], now.y_m - previous[2])
    row = first(distance_m > max_speed_mps * elapsed_s + _SIDESTEP_M)  # NaN is never greater
    if row is not None:
        raise source.problem(
            int(frame.place[row]),
            f"the vehicle is {distance_m[row]:.1f} m from where it was {elapsed_s[row]:.10g} s before, farther than "
            f"mobility.max_speed_mps = {max_speed_mps:g} allows: record without teleports.",
        )


def _too_fast(
    frame: Frame, row: int, source: RecordingFile, max_speed_mps: float, fastest_mps: float
) -> ExperimentError:
    enough_mps = math.ceil(fastest_mps * 100) / 100
    return source.problem(
        int(frame.place[row]),
        f"speed = {frame.scene.speed_mps[row]:.10g} m/s is above mobility.max_speed_mps = {max_speed_mps:g}: raise "
        f"mobility.max_speed_mps to at least {enough_mps:g}, because the sojourn bound relies on it.",
    )


def _fastest_mps(frame: Frame, later: Iterator[Frame]) -> float:
    """Highest speed in this and all later frames, so that the user has to raise the limit only once."""
    fastest_mps = float(frame.scene.speed_mps.max())
    try:
        for other in later:
            fastest_mps = max(fastest_mps, float(other.scene.speed_mps.max(initial=0.0)))
    except BadInput:
        pass  # report one error at a time
    return fastest_mps
