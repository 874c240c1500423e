"""Who is in the coverage circle, when they enter and leave it, and how long they are sure to stay.

The circle of radius r is centred on the gNB at (0, 0); a distance of exactly r is inside. Between two scenes
vehicles move on straight lines at constant speed.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from vefl_sim.core.arrays import Bools, Floats, Ints
from vefl_sim.mobility.scene import Mobility, Scene

_TINY = 1e-30  # m², instead of a zero in a denominator


@dataclass(frozen=True)
class Crossing:
    """A CV enters or leaves the circle."""

    time_ns: int
    cv: int
    entered: bool


def sojourn_bound_s(
    x_m: Floats,
    y_m: Floats,
    *,
    radius_m: float,
    max_speed_mps: float,
    method: Literal["axis", "radial"] = "axis",
) -> Floats:
    """Time t_soj for which a CV at (x, y) stays in coverage at least (paper eq. sojournPeriod); 0 outside.

    "axis": the smallest of the four distances to the circle along the axes, over u_max:
        min(√(r² − y²) − |x|, √(r² − x²) − |y|) / u_max, a worst case on axis-parallel streets;
    "radial": (r − √(x² + y²)) / u_max, a worst case anywhere.
    """
    x_m, y_m = np.abs(x_m), np.abs(y_m)
    if method == "radial":
        distance_m = radius_m - np.hypot(x_m, y_m)
    else:
        along_x = np.sqrt(np.maximum(radius_m**2 - y_m**2, 0.0)) - x_m
        along_y = np.sqrt(np.maximum(radius_m**2 - x_m**2, 0.0)) - y_m
        distance_m = np.minimum(along_x, along_y)
    return np.maximum(distance_m, 0.0) / max_speed_mps


def in_coverage(scene: Scene, radius_m: float) -> Ints:
    """Numbers of the CVs in the circle, ascending."""
    return scene.vehicle[_covered(scene, radius_m)]


def crossings(before: Scene, after: Scene, radius_m: float) -> list[Crossing]:
    """Entries and exits of CVs after the first scene and up to the second, by time and then by CV.

    They agree with `in_coverage` of both scenes: a CV enters and leaves in turn, at the nearest nanosecond
    that is after the first scene. A visit that is over within the same nanosecond is none. A CV that is new
    in the second scene and inside enters at its time; one that was inside and is gone leaves at that time.
    """
    start, end = _common(before, after)
    found = _crossed(start, end, radius_m)
    if start is not before or end is not after:
        found += _listed(after.time_ns, _covered_only_in(before, after, radius_m), entered=False)
        found += _listed(after.time_ns, _covered_only_in(after, before, radius_m), entered=True)
    return sorted(found, key=lambda crossing: (crossing.time_ns, crossing.cv, not crossing.entered))


def at(before: Scene, after: Scene, time_ns: int) -> Scene:
    """The scene at an instant between two: one of them at its own time, else those in both, interpolated."""
    if time_ns == before.time_ns:
        return before
    if time_ns == after.time_ns:
        return after
    if not before.time_ns < time_ns < after.time_ns:
        raise ValueError(f"{time_ns} ns is not between {before.time_ns} and {after.time_ns} ns")
    start, end = _common(before, after)
    share = (time_ns - before.time_ns) / (after.time_ns - before.time_ns)
    return Scene(
        time_ns=time_ns,
        vehicle=start.vehicle,
        x_m=(1 - share) * start.x_m + share * end.x_m,
        y_m=(1 - share) * start.y_m + share * end.y_m,
        speed_mps=(1 - share) * start.speed_mps + share * end.speed_mps,
        connected=start.connected,
    )


def visitors(mobility: Mobility, radius_m: float, duration_ns: int) -> Ints:
    """Numbers of all CVs that are in the circle at some instant from now to `duration_ns`, ascending.

    Advances the mobility; give it one of its own.
    """
    scene = mobility.scene()
    seen = set(in_coverage(scene, radius_m).tolist())
    while scene.time_ns < duration_ns:
        before, scene = scene, mobility.advance()
        for crossing in crossings(before, scene, radius_m):
            if crossing.entered and crossing.time_ns <= duration_ns:
                seen.add(crossing.cv)
    return np.array(sorted(seen), np.int64)


def _covered(scene: Scene, radius_m: float) -> Bools:
    return (scene.x_m**2 + scene.y_m**2 <= radius_m**2) & scene.connected


def _common(before: Scene, after: Scene) -> tuple[Scene, Scene]:
    """Both scenes with only those vehicles that are in both; the scenes themselves where that is everybody."""
    if np.array_equal(before.vehicle, after.vehicle):
        return before, after
    _, old, new = np.intersect1d(before.vehicle, after.vehicle, assume_unique=True, return_indices=True)
    return before.rows(old), after.rows(new)


def _covered_only_in(scene: Scene, other: Scene, radius_m: float) -> Ints:
    """CVs in the circle that the other scene does not know."""
    return np.setdiff1d(in_coverage(scene, radius_m), other.vehicle, assume_unique=True)


def _crossed(before: Scene, after: Scene, radius_m: float) -> list[Crossing]:
    """Crossings between two scenes of the same vehicles.

    With start p, displacement q, a = q·q, b = p·q, c = p·p − r², the circle is met where a·s² + 2b·s + c = 0
    for s in [0, 1]. From outside to outside that needs the nearest point, s = −b/a, on the way and inside.
    """
    x, y = before.x_m, before.y_m
    q_x, q_y = after.x_m - x, after.y_m - y
    a, b, c = q_x**2 + q_y**2, x * q_x + y * q_y, x**2 + y**2 - radius_m**2
    was, is_now = _covered(before, radius_m), _covered(after, radius_m)
    through = (b < 0) & (a + b > 0) & (b * b > a * c) & ~(was | is_now) & before.connected
    (meets,) = ((was != is_now) | through).nonzero()
    if not meets.size:
        return []
    was, is_now, cv = was[meets], is_now[meets], before.vehicle[meets]
    shares = _roots(a[meets], b[meets], c[meets])
    enter_ns, leave_ns = (_instant(share, before.time_ns, after.time_ns) for share in shares)
    enters = ~was & (is_now | (enter_ns < leave_ns))
    leaves = ~is_now & (was | (enter_ns < leave_ns))
    return _listed(enter_ns[enters], cv[enters], True) + _listed(leave_ns[leaves], cv[leaves], False)


def _roots(a: Floats, b: Floats, c: Floats) -> tuple[Floats, Floats]:
    """Smaller and larger s with a·s² + 2b·s + c = 0, without cancellation where c is near 0."""
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    smaller = c / np.maximum(root - b, _TINY)
    larger = np.where(b < 0, (root - b) / np.maximum(a, _TINY), -c / np.maximum(root + b, _TINY))
    return smaller, larger


def _instant(share: Floats, start_ns: int, end_ns: int) -> Ints:
    """The nearest whole nanosecond after the start and not after the end."""
    elapsed_ns = np.rint(np.clip(share, 0.0, 1.0) * (end_ns - start_ns)).astype(np.int64)
    return start_ns + np.maximum(elapsed_ns, 1)


def _listed(time_ns: Ints | int, cv: Ints, entered: bool) -> list[Crossing]:
    times = np.broadcast_to(time_ns, cv.shape).tolist()
    return [Crossing(t, number, entered) for t, number in zip(times, cv.tolist(), strict=True)]
