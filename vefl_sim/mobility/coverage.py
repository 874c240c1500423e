"""Which CVs are in the coverage circle, when they enter and leave it, and how long they stay at least.

The circle of radius r is centred on the gNB at (0, 0); a distance of exactly r is inside. Between two scenes
vehicles move on straight lines at constant speed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from vefl_sim.core.arrays import Bools, Floats, Ints
from vefl_sim.core.clock import to_s
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.progress import report
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.scene import Mobility, Scene

_TINY = 1e-30  # m², replaces a zero in a denominator


@dataclass(frozen=True)
class Crossing:
    """The event that a CV enters (`entered`) or leaves the coverage circle."""

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
    """Lower bound t_soj on the time that a CV at (x, y) stays in coverage (paper eq. sojournPeriod); 0 outside.

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


def sojourn_bound_of(experiment: Experiment) -> Callable[[Floats, Floats], Floats]:
    """The sojourn bounds of an experiment, as a function of positions x and y in m."""
    return partial(
        sojourn_bound_s,
        radius_m=experiment.radio.coverage_radius_m,
        max_speed_mps=experiment.mobility.max_speed_mps,
        method=experiment.mobility.sojourn,
    )


def in_coverage(scene: Scene, radius_m: float) -> Ints:
    """Numbers of the CVs in the circle, in ascending order."""
    return scene.vehicle[_covered(scene, radius_m)]


def crossings(before: Scene, after: Scene, radius_m: float) -> list[Crossing]:
    """Entries and exits of CVs after the first scene and up to the second, sorted by time and then by CV.

    They agree with `in_coverage` of both scenes: entries and exits of a CV alternate, each at the nearest
    nanosecond after the first scene. A visit that begins and ends within the same nanosecond is not reported. A CV
    that appears inside the circle in the second scene enters at the time of that scene; a CV that was inside and is
    missing from the second scene leaves at that time.
    """
    start, end = _in_both(before, after)
    events = _crossings_between(start, end, radius_m)
    if start is not before or end is not after:
        was, now = in_coverage(before, radius_m), in_coverage(after, radius_m)
        events += _as_crossings(after.time_ns, np.setdiff1d(was, after.vehicle, assume_unique=True), entered=False)
        events += _as_crossings(after.time_ns, np.setdiff1d(now, before.vehicle, assume_unique=True), entered=True)
    return sorted(events, key=lambda crossing: (crossing.time_ns, crossing.cv, not crossing.entered))


def at(before: Scene, after: Scene, time_ns: int) -> Scene:
    """The scene at a time between two: one of the two at its own time, otherwise the vehicles in both, interpolated."""
    if time_ns == before.time_ns:
        return before
    if time_ns == after.time_ns:
        return after
    start, end = _in_both(before, after)
    share = (time_ns - before.time_ns) / (after.time_ns - before.time_ns)
    return Scene(
        time_ns=time_ns,
        vehicle=start.vehicle,
        x_m=(1 - share) * start.x_m + share * end.x_m,
        y_m=(1 - share) * start.y_m + share * end.y_m,
        speed_mps=(1 - share) * start.speed_mps + share * end.speed_mps,
        connected=start.connected,
    )


def most_in_coverage(experiment: Experiment, lane_m: float) -> int:
    """Number of vehicles that fit bumper to bumper on the lanes in coverage, in m; refuses a larger demand."""
    most = int(lane_m / (experiment.mobility.length_m + experiment.mobility.min_gap_m))
    if experiment.mean_in_coverage > most:
        raise ExperimentError(
            f"traffic.mean_in_coverage = {experiment.mean_in_coverage:g}: the streets in coverage hold {most} vehicles "
            "at most, bumper to bumper: lower it."
        )
    return most


def visitors(mobility: Mobility, radius_m: float, duration_ns: int) -> Ints:
    """Numbers of all CVs that are in the circle at any time from now to `duration_ns`, in the order of first entry.

    CVs that are there at the start come first, in ascending order; so a shorter time gives the beginning of the list.

    Advances `mobility`, so the caller must pass an object that is not used elsewhere.
    """
    scene = mobility.scene()
    visited = dict.fromkeys(in_coverage(scene, radius_m).tolist())
    while scene.time_ns < duration_ns:
        before, scene = scene, mobility.advance()
        report("looking for all CVs that will come", to_s(scene.time_ns), to_s(duration_ns))
        for crossing in crossings(before, scene, radius_m):
            if crossing.entered and crossing.time_ns <= duration_ns:
                visited.setdefault(crossing.cv)
    return np.array([*visited], np.int64)


def _covered(scene: Scene, radius_m: float) -> Bools:
    return (scene.x_m**2 + scene.y_m**2 <= radius_m**2) & scene.connected


def _in_both(before: Scene, after: Scene) -> tuple[Scene, Scene]:
    """Both scenes reduced to the vehicles in both; the same objects if no vehicle has to be dropped."""
    if np.array_equal(before.vehicle, after.vehicle):
        return before, after
    _, old, new = np.intersect1d(before.vehicle, after.vehicle, assume_unique=True, return_indices=True)
    return before.rows(old), after.rows(new)


def _crossings_between(before: Scene, after: Scene, radius_m: float) -> list[Crossing]:
    """Crossings between two scenes of the same vehicles.

    With start p, displacement q, a = q·q, b = p·q, c = p·p − r², the way crosses the circle where
    a·s² + 2b·s + c = 0 for s in [0, 1]. If both ends are outside, that requires that the point nearest to the centre,
    s = −b/a, is on the way and inside.
    """
    x, y = before.x_m, before.y_m
    q_x, q_y = after.x_m - x, after.y_m - y
    a, b, c = q_x**2 + q_y**2, x * q_x + y * q_y, x**2 + y**2 - radius_m**2
    was_inside, is_inside = _covered(before, radius_m), _covered(after, radius_m)
    passes_through = (b < 0) & (a + b > 0) & (b * b > a * c) & ~(was_inside | is_inside) & before.connected
    (crossing,) = ((was_inside != is_inside) | passes_through).nonzero()
    if not crossing.size:
        return []
    was_inside, is_inside, cv = was_inside[crossing], is_inside[crossing], before.vehicle[crossing]
    shares = _roots(a[crossing], b[crossing], c[crossing])
    enter_ns, leave_ns = (_to_ns(share, before.time_ns, after.time_ns) for share in shares)
    enters = ~was_inside & (is_inside | (enter_ns < leave_ns))
    leaves = ~is_inside & (was_inside | (enter_ns < leave_ns))
    return _as_crossings(enter_ns[enters], cv[enters], True) + _as_crossings(leave_ns[leaves], cv[leaves], False)


def _roots(a: Floats, b: Floats, c: Floats) -> tuple[Floats, Floats]:
    """Smaller and larger root s of a·s² + 2b·s + c = 0, without cancellation where c is near 0."""
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    smaller = c / np.maximum(root - b, _TINY)
    larger = np.where(b < 0, (root - b) / np.maximum(a, _TINY), -c / np.maximum(root + b, _TINY))
    return smaller, larger


def _to_ns(share: Floats, start_ns: int, end_ns: int) -> Ints:
    """Time at this share of the interval, rounded to a nanosecond after the start and not after the end."""
    elapsed_ns = np.rint(np.clip(share, 0.0, 1.0) * (end_ns - start_ns)).astype(np.int64)
    return start_ns + np.maximum(elapsed_ns, 1)


def _as_crossings(time_ns: Ints | int, cv: Ints, entered: bool) -> list[Crossing]:
    times = np.broadcast_to(time_ns, cv.shape).tolist()
    return [Crossing(t, number, entered) for t, number in zip(times, cv.tolist(), strict=True)]
