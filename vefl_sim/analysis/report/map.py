"""The map of a page: the way of each vehicle as few points, between which it drives straight and evenly; and streets.

The `mobility` table has a row per vehicle and second. Between two rows a vehicle brakes, and on the street grid it may
turn a corner that a straight line would cut by several metres. So the way between two rows leads over the corner, if
there is one, and its speed changes evenly from that of one row to that of the next. Then all points are dropped that
lie within TOLERANCE_M of the straight line between those that stay.

Positions are relative to the gNB. Streets are those of the grid, or else where vehicles drove.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.errors import RunNotFound
from vefl_sim.experiment.experiment import Experiment, RoadsTable

TOLERANCE_M = 0.25
UNIT_M, UNIT_S = 0.1, 0.001
"""Units in which positions and times are embedded."""
_MAX_M, _MAX_S = 1e6, 1e7  # largest coordinates and times that are accepted
_MAX_LINES = 20_000  # of the streets
_SHARES = np.arange(10) / 10  # instants between two rows, as shares of the time


@dataclass(frozen=True)
class Track:
    """A vehicle on its way without a gap: times in ms, positions in decimetres."""

    vehicle: int
    connected: bool
    points: Ints  # (points, 3): time, x, y

    def embedded(self) -> list[int]:
        """Number, 1 if it is a CV, then time, x and y of the first point, and the differences of the others."""
        return [self.vehicle, int(self.connected), *np.diff(self.points, axis=0, prepend=0).ravel().tolist()]


def tracks_of(mobility: pd.DataFrame, every_s: float, *, roads: RoadsTable | None) -> list[Track]:
    """The tracks of all vehicles; a new one starts where a vehicle was missing for more than a row.

    `every_s`: time between two rows of a vehicle; `roads`: the street grid, if the traffic drives on it. RunNotFound if
    a time or a position is impossible.
    """
    names = ["time_ns", "x_m", "y_m", "speed_mps", "vehicle"]
    rows = mobility[names].to_numpy(np.float64, na_value=np.nan) / [1e9, 1, 1, 1, 1]
    if not (np.abs(rows) <= [_MAX_S, _MAX_M, _MAX_M, _MAX_M, np.inf]).all():
        raise RunNotFound("the mobility table has a time, a position or a speed that is impossible")
    order = np.lexsort((rows[:, 0], rows[:, 4]))
    rows, connected = rows[order], mobility["connected"].to_numpy(bool, na_value=False)[order]
    gap_s, is_other = np.diff(rows[:, 0]), np.diff(rows[:, 4]) != 0
    starts = [0, *(np.flatnonzero(is_other | (gap_s <= 0) | (gap_s >= 1.5 * every_s)) + 1)] if len(rows) else []
    return [
        Track(int(own[0, 4]), bool(connected[start]), _embeddable(_thinned(_way(own, roads))))
        for start, own in zip(starts, np.split(rows, starts[1:]), strict=False)
    ]


def _embeddable(points: Floats) -> Ints:
    """Times and positions (points, 3) in the units of the page."""
    return np.rint(points / [UNIT_S, UNIT_M, UNIT_M]).astype(np.int64)


def _way(rows: Floats, roads: RoadsTable | None) -> Floats:
    """Times and positions (points, 3) on the way over rows of time, x, y and speed."""
    time_s, xy_m, speed_mps = rows[:, 0], rows[:, 1:3], rows[:, 3]
    line_m = np.repeat(xy_m, 2, axis=0)[:-1]  # with the corner, or once more the row, after each row
    if roads:
        line_m[1::2] = _grid_corners(xy_m, roads)
    along_m = np.append(0.0, np.hypot(*np.diff(line_m, axis=0).T).cumsum())
    start, end = speed_mps[:-1, None], speed_mps[1:, None]
    with np.errstate(invalid="ignore"):
        driven = _SHARES * (2 * start + _SHARES * (end - start)) / (start + end)  # share of the way
    way_m = np.where(np.isfinite(driven), driven, _SHARES) * np.diff(along_m[::2])[:, None]
    driven_m = np.append((along_m[:-1:2, None] + way_m).ravel(), along_m[-1])
    times_s = np.append((time_s[:-1, None] + _SHARES * np.diff(time_s)[:, None]).ravel(), time_s[-1])
    return np.column_stack([times_s, *(np.interp(driven_m, along_m, places_m) for places_m in line_m.T)])


def _grid_corners(xy_m: Floats, roads: RoadsTable) -> Floats:
    """The corner between each row and the next on the street grid, (rows - 1, 2); where there is none, the row."""
    own_m, next_m = xy_m[:-1], xy_m[1:]
    lines = own_m / roads.block_m + np.array(roads.blocks_xy) / 2  # whole numbers on a street
    along_x = np.abs(lines[:, 1] - np.rint(lines[:, 1])) < 1e-6
    one, other = np.column_stack([next_m[:, 0], own_m[:, 1]]), np.column_stack([own_m[:, 0], next_m[:, 1]])
    is_straight = np.abs(next_m - own_m).min(axis=1)[:, None] < TOLERANCE_M
    return np.where(is_straight, own_m, np.where(along_x[:, None], one, other))


def _thinned(points: Floats) -> Floats:
    """The points of a track (points, 3) without those that are near enough to the line between their neighbours.

    From the last point that stays, the velocities that pass all later points within the tolerance form an interval
    in x and in y; as soon as a point is outside of it, the one before it stays.
    """
    rows = points.tolist()
    kept, (from_s, from_x, from_y) = [0], rows[0]
    x_low = y_low = -np.inf
    x_high = y_high = np.inf
    for index in range(1, len(rows)):
        time_s, x, y = rows[index]
        passed_s = max(time_s - from_s, 1e-6)
        x_mps, y_mps = (x - from_x) / passed_s, (y - from_y) / passed_s
        if not (x_low <= x_mps <= x_high and y_low <= y_mps <= y_high):
            kept.append(index - 1)
            from_s, from_x, from_y = rows[index - 1]
            passed_s = max(time_s - from_s, 1e-6)
            x_mps, y_mps = (x - from_x) / passed_s, (y - from_y) / passed_s
            x_low = y_low = -np.inf
            x_high = y_high = np.inf
        slack = TOLERANCE_M / passed_s
        x_low, x_high = max(x_low, x_mps - slack), min(x_high, x_mps + slack)
        y_low, y_high = max(y_low, y_mps - slack), min(y_high, y_mps + slack)
    return points[sorted({*kept, len(rows) - 1})]


def streets_of(experiment: Experiment, tracks: Sequence[Track]) -> dict[str, Any]:
    """Lines in decimetres, each x, y, x, y, …, and `kind`: "grid", or "driven" (where vehicles drove)."""
    if experiment.mobility.kind == "idm":
        lines = grid_lines_m(experiment)[:_MAX_LINES]
        return {"kind": "grid", "lines": [np.rint(line / UNIT_M).astype(int).ravel().tolist() for line in lines]}
    return {"kind": "driven", "lines": [track.points[:, 1:].ravel().tolist() for track in tracks[:_MAX_LINES]]}


def grid_lines_m(experiment: Experiment) -> list[Floats]:
    """The streets of the grid; those that end outside lead one block further, if vehicles may use them there."""
    roads, radius_m = experiment.roads, experiment.radio.coverage_radius_m
    closed_m = radius_m if roads.exits == "outside" else 0.0
    lines = []
    for axis, (across, along) in enumerate((roads.blocks_xy[::-1], roads.blocks_xy)):
        half_m = along * roads.block_m / 2
        for place in np.arange(across + 1) * roads.block_m - across * roads.block_m / 2:
            end_m = half_m + roads.block_m if np.hypot(half_m + roads.block_m, place) >= closed_m else half_m
            line = np.array([[-end_m, place], [end_m, place]])
            lines.append(line[:, ::-1] if axis else line)
    return lines


def bounds_of(lines: Sequence[Sequence[int]], radius_m: float) -> list[float]:
    """Left, lower, right and upper border of the map in m: the streets near the circle, and all of the circle."""
    points_m = np.array([place for line in lines for place in line], float).reshape(-1, 2) * UNIT_M
    near_m = points_m[(np.abs(points_m) <= 1.35 * radius_m).all(axis=1)]
    circle_m = np.array([[-radius_m, -radius_m], [radius_m, radius_m]])
    shown_m = np.vstack([circle_m, near_m])
    return [round(side, 1) for side in (*shown_m.min(axis=0).tolist(), *shown_m.max(axis=0).tolist())]
