"""The map of a page: the way of each vehicle as few points, between which it drives straight and evenly; and streets.

The `mobility` table has a row per vehicle and second. Between two rows a vehicle brakes, and turns corners that a
straight line would cut by several metres. So the way between two rows is reconstructed first: it leads over the
corner, if there is one, and has the two recorded speeds at its ends (a cubic Hermite spline of the distance). Then all
points are dropped that lie within TOLERANCE_M of the straight line between those that stay.

Positions are relative to the gNB. Streets are those of the grid, of SUMO's network, or where vehicles drove.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vefl_sim.analysis.report.source import Source
from vefl_sim.core.arrays import Bools, Floats, Ints
from vefl_sim.core.errors import RunNotFound, VeflError
from vefl_sim.experiment.experiment import Experiment, RoadsTable
from vefl_sim.records.identity import Identity, require_same

TOLERANCE_M = 0.25
UNIT_M, UNIT_S = 0.1, 0.001
"""Units in which positions and times are embedded."""
_MAX_M, _MAX_S = 1e6, 1e7  # largest coordinates and times that are accepted
_MAX_LINES = 20_000  # of the streets
_NETS = (".net.xml", ".net.xml.gz")
_TURN = np.arange(10) / 10  # instants on the way over a corner, as shares of the time between the rows


@dataclass(frozen=True)
class Track:
    """A vehicle on its way without a gap: times in ms, positions in decimetres."""

    vehicle: int
    connected: bool
    points: Ints  # (points, 3): time, x, y

    def embedded(self) -> list[int]:
        """Number, 1 if it is a CV, then time, x and y of the first point, and the differences of the others."""
        return [self.vehicle, int(self.connected), *np.diff(self.points, axis=0, prepend=0).ravel().tolist()]


@dataclass(frozen=True)
class _Rows:
    """Rows of the mobility table, sorted by vehicle and time."""

    vehicle: Ints
    connected: Bools
    time_s: Floats
    xy_m: Floats  # (rows, 2)
    speed_mps: Floats

    @classmethod
    def of(cls, mobility: pd.DataFrame) -> "_Rows":
        """Sort the table; RunNotFound if a time or a position in it is impossible."""
        values = mobility[["time_ns", "x_m", "y_m", "speed_mps"]].to_numpy(np.float64, na_value=np.nan)
        values[:, 0] /= 1e9
        possible = np.isfinite(values).all() and (np.abs(values) <= [_MAX_S, _MAX_M, _MAX_M, _MAX_M]).all()
        if not possible or mobility["vehicle"].isna().any():
            raise RunNotFound("the mobility table has a time, a position or a speed that is impossible")
        vehicle = mobility["vehicle"].to_numpy(np.int64)
        order = np.lexsort((values[:, 0], vehicle))
        connected = mobility["connected"].to_numpy(bool, na_value=False)
        time_s, xy_m, speed_mps = values[order, 0], values[order, 1:3], values[order, 3]
        return cls(vehicle[order], connected[order], time_s, xy_m, speed_mps)


def tracks_of(mobility: pd.DataFrame, every_s: float, *, roads: RoadsTable | None) -> list[Track]:
    """The tracks of all vehicles; a new one starts where a vehicle was missing for more than a row.

    `every_s`: time between two rows of a vehicle; `roads`: the street grid, if the traffic drives on it.
    """
    rows = _Rows.of(mobility)
    gap_s = np.diff(rows.time_s, append=np.inf)
    goes_on = np.append(rows.vehicle[1:] == rows.vehicle[:-1], False) & (gap_s > 0) & (gap_s < 1.5 * every_s)
    corner_m = _grid_corners(rows.xy_m, roads) if roads else _curves(rows, goes_on, gap_s)
    turns = goes_on & ~np.isnan(corner_m[:, 0])
    corner_m = np.where(turns[:, None], corner_m, rows.xy_m)
    straight = np.arange(n := int(np.clip(np.ceil(2 * every_s), 2, 20))) / n
    parts = [(turns, _TURN), (goes_on & ~turns, straight), (~goes_on, straight[:1])]
    row = np.concatenate([np.repeat(which.nonzero()[0], len(shares)) for which, shares in parts])
    points = np.concatenate([_way(rows, which.nonzero()[0], gap_s, corner_m, shares) for which, shares in parts])
    order = np.lexsort((points[:, 0], row))
    starts = np.flatnonzero(np.append(True, ~goes_on[:-1])[: len(goes_on)])
    ways = np.split(points[order], np.searchsorted(row[order], starts[1:]))
    return [
        Track(int(rows.vehicle[start]), bool(rows.connected[start]), _embeddable(_thinned(way)))
        for start, way in zip(starts, ways, strict=False)
    ]


def _embeddable(points: Floats) -> Ints:
    """Times and positions (points, 3) in the units of the page."""
    return np.rint(points / [UNIT_S, UNIT_M, UNIT_M]).astype(np.int64)


def _way(rows: _Rows, first: Ints, gap_s: Floats, corner_m: Floats, shares: Floats) -> Floats:
    """Times and positions (ways · shares, 3) on the ways from the rows `first` to those that follow."""
    if len(shares) == 1:  # the last row of a track
        return np.column_stack([rows.time_s[first], rows.xy_m[first]])
    start_m, middle_m, end_m = rows.xy_m[first], corner_m[first], rows.xy_m[first + 1]
    leg_m, rest_m = np.hypot(*(middle_m - start_m).T), np.hypot(*(end_m - middle_m).T)
    driven_m = _driven_m(leg_m + rest_m, gap_s[first], rows.speed_mps[first], rows.speed_mps[first + 1], shares)
    on_leg = np.clip(driven_m / np.maximum(leg_m, 1e-9)[:, None], 0, 1)[..., None]
    on_rest = np.clip((driven_m - leg_m[:, None]) / np.maximum(rest_m, 1e-9)[:, None], 0, 1)[..., None]
    xy_m = start_m[:, None] + on_leg * (middle_m - start_m)[:, None] + on_rest * (end_m - middle_m)[:, None]
    time_s = rows.time_s[first][:, None] + shares * gap_s[first][:, None]
    return np.column_stack([time_s.ravel(), xy_m.reshape(-1, 2)])


def _driven_m(way_m: Floats, gap_s: Floats, start_mps: Floats, end_mps: Floats, share: Floats) -> Floats:
    """Distance driven at shares of the time, (ways, shares): a cubic with both speeds at its ends, never backwards."""
    way, start, end = (column[:, None] for column in (way_m, gap_s * start_mps, gap_s * end_mps))
    s = share[None, :]
    cubic = way * (3 * s**2 - 2 * s**3) + start * (s - 2 * s**2 + s**3) + end * (s**3 - s**2)
    driven: Floats = np.maximum.accumulate(np.clip(cubic, 0.0, way), axis=1)
    return driven


def _grid_corners(xy_m: Floats, roads: RoadsTable) -> Floats:
    """The corner between each row and the next on the street grid, (rows, 2); NaN where there is none."""
    following_m = np.vstack([xy_m[1:], xy_m[-1:]])
    lines = xy_m / roads.block_m + np.array(roads.blocks_xy) / 2  # whole numbers on a street
    along_x = np.abs(lines[:, 1] - np.rint(lines[:, 1])) < 1e-6
    one = np.column_stack([following_m[:, 0], xy_m[:, 1]])
    other = np.column_stack([xy_m[:, 0], following_m[:, 1]])
    corner_m = np.where(along_x[:, None], one, other)
    corner_m[(np.abs(following_m - xy_m) < TOLERANCE_M).any(axis=1)] = np.nan
    return corner_m


def _curves(rows: _Rows, goes_on: Bools, gap_s: Floats) -> Floats:
    """A point of the curve between each row and the next on any streets, (rows, 2); NaN where the way is straight.

    The line through the row and the one before meets the line through the next two in a corner. The vehicle drives over
    a point between this corner and the middle of the straight line: that which makes its way as long as its speeds say.
    """
    (row,) = (goes_on[:-2] & goes_on[1:-1] & goes_on[2:]).nonzero()
    before, own, following, last = (rows.xy_m[row + place] for place in range(4))
    into, out, way = own - before, last - following, following - own
    with np.errstate(divide="ignore", invalid="ignore"):
        ahead, behind = _cross(way, out) / _cross(into, out), _cross(into, way) / _cross(into, out)
        corner = own + ahead[:, None] * into
    length_m = gap_s[row + 1] * (rows.speed_mps[row + 1] + rows.speed_mps[row + 2]) / 2
    found = (ahead > 0) & (behind > 0) & np.isfinite(corner).all(axis=1) & (length_m > 1.01 * np.hypot(*way.T))
    middle, corner = ((own + following) / 2)[found], corner[found]
    low, high = np.zeros(len(middle)), np.ones(len(middle))
    for _ in range(12):  # halves the interval each time
        share = (low + high) / 2
        point = middle + share[:, None] * (corner - middle)
        too_long = np.hypot(*(point - own[found]).T) + np.hypot(*(following[found] - point).T) > length_m[found]
        low, high = np.where(too_long, low, share), np.where(too_long, share, high)
    points_m = np.full_like(rows.xy_m, np.nan)
    points_m[row[found] + 1] = middle + low[:, None] * (corner - middle)
    return points_m


def _cross(one: Floats, other: Floats) -> Floats:
    product: Floats = one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]
    return product


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


def streets_of(source: Source, tracks: Sequence[Track]) -> dict[str, Any]:
    """Lines in decimetres, each x, y, x, y, …, and `kind`: "grid", "net" or "driven" (where vehicles drove)."""
    experiment = source.experiment
    if experiment.mobility.kind == "idm":
        return {"kind": "grid", "lines": _embedded(_grid_lines(experiment))}
    if experiment.mobility.kind == "sumo" and (lines := _net_lines(source)):
        return {"kind": "net", "lines": _embedded(lines)}
    return {"kind": "driven", "lines": [track.points[:, 1:].ravel().tolist() for track in tracks[:_MAX_LINES]]}


def _embedded(lines: Sequence[Floats]) -> list[list[int]]:
    return [np.rint(line / UNIT_M).astype(int).ravel().tolist() for line in lines[:_MAX_LINES]]


def _grid_lines(experiment: Experiment) -> list[Floats]:
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


def _net_lines(source: Source) -> list[Floats]:
    """The streets of SUMO's network around the gNB; empty if it is not at hand, or another one than that of the run."""
    from vefl_sim.mobility.sumo.inputs import gnb_m
    from vefl_sim.mobility.sumo.net import read_net

    experiment = source.experiment
    try:
        path = _net_path(source)
        if path is None:
            return []
        net = read_net(path, str(path))
        origin_m, reach_m = np.array(gnb_m(experiment, net)), 2.0 * experiment.radio.coverage_radius_m
        lines = [net.joined_m(street) - origin_m for street in net.streets]
        return [line for line in lines if (np.abs(line) <= reach_m).all(axis=1).any()]
    except (VeflError, OSError, ValueError, ImportError):
        return []


def _net_path(source: Source) -> Path | None:
    """The network in the run directory or, if it is provably that of the run, the file that `mobility.file` names.

    A run may come from a stranger, and must not make us read files that he only guesses; the digest of the
    configuration covers the content of the file.
    """
    own = source.run.path / "traffic" / "map.net.xml.gz"
    if own.is_file():
        return own
    named = Path(source.experiment.mobility.file)
    if not str(named).endswith(_NETS) or not named.is_file():
        return None
    parts = source.versions.get("parts", {})
    require_same(source.run.path, Identity.recorded(source.experiment, parts))
    return named


def bounds_of(lines: Sequence[Sequence[int]], radius_m: float) -> list[float]:
    """Left, lower, right and upper border of the map in m: the streets near the circle, and all of the circle."""
    points_m = np.array([place for line in lines for place in line], float).reshape(-1, 2) * UNIT_M
    near_m = points_m[(np.abs(points_m) <= 1.35 * radius_m).all(axis=1)]
    circle_m = np.array([[-radius_m, -radius_m], [radius_m, radius_m]])
    shown_m = np.vstack([circle_m, near_m])
    return [round(side, 1) for side in (*shown_m.min(axis=0).tolist(), *shown_m.max(axis=0).tolist())]
