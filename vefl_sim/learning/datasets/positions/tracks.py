"""What the CVs of a run record of themselves: position and speed, once per second while they are in coverage."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.clock import to_s
from vefl_sim.core.progress import report
from vefl_sim.mobility.coverage import at, in_coverage
from vefl_sim.mobility.scene import Mobility, Scene

_SECOND_NS = 1_000_000_000
_MOVED_M = 0.5  # a shorter way within a second does not tell a heading


@dataclass(frozen=True)
class Tracks:
    """Recorded positions, sorted by CV and then by time; a track is a CV's record without a gap in time."""

    vehicle: NDArray[np.int64]  # [positions]
    track: NDArray[np.int64]  # [positions], number of the track: 0, 1, …
    place: NDArray[np.int64]  # [positions], seconds since the start of the track
    xy_m: NDArray[np.float64]  # [positions, 2]
    speed_mps: NDArray[np.float64]  # [positions]

    @classmethod
    def recorded(cls, mobility: Mobility, radius_m: float, duration_ns: int) -> "Tracks":
        """Record all CVs in the circle until `duration_ns`; advances `mobility`, so pass an object of your own."""
        scenes = [*_each_second(mobility, radius_m, duration_ns)]
        vehicle = np.concatenate([scene.vehicle for scene in scenes])
        second = np.repeat([scene.time_ns // _SECOND_NS for scene in scenes], [len(scene.vehicle) for scene in scenes])
        xy_m = np.concatenate([np.stack([scene.x_m, scene.y_m], axis=1) for scene in scenes])
        order = np.lexsort((second, vehicle))
        vehicle, second = vehicle[order], second[order]
        starts = np.append(True, (np.diff(vehicle) != 0) | (np.diff(second) != 1))[: len(vehicle)]
        track = np.cumsum(starts) - 1
        place = np.arange(len(vehicle)) - np.flatnonzero(starts)[track]
        speed_mps = np.concatenate([scene.speed_mps for scene in scenes])
        return cls(vehicle, track, place, xy_m[order], speed_mps[order])

    def headings(self) -> NDArray[np.float64]:
        """Direction of the CV's last movement, as a unit vector, [positions, 2]; nan before its first in the track."""
        step_m = np.diff(self.xy_m, axis=0, prepend=np.nan)
        step_m[self.place == 0] = np.nan
        length_m = np.hypot(*step_m.T)
        moved = length_m >= _MOVED_M
        last = np.maximum.accumulate(np.where(moved, np.arange(len(moved)), -1))
        known = (last >= 0) & (self.track[last] == self.track)
        headings = np.full_like(step_m, np.nan)
        headings[known] = step_m[last[known]] / length_m[last[known], None]
        return headings


def _each_second(mobility: Mobility, radius_m: float, duration_ns: int) -> list[Scene]:
    """The CVs in the circle at 0 s, 1 s, …; interpolated where the traffic has no scene at that time."""
    scene, seconds = mobility.scene(), range(0, duration_ns + 1, _SECOND_NS)
    before, scenes = scene, []
    for time_ns in seconds:
        while scene.time_ns < time_ns:
            before, scene = scene, mobility.advance()
        report("recording positions", to_s(time_ns), to_s(duration_ns))
        now = at(before, scene, time_ns)
        scenes.append(now.rows(np.flatnonzero(np.isin(now.vehicle, in_coverage(now, radius_m)))))
    return scenes
