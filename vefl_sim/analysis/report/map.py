"""The map of a page: the recorded positions of each vehicle, and the streets of the grid; relative to the gNB.

The `mobility` table has a row per vehicle and second. Where a vehicle is between two rows, the scripts of the page
compute (`cars.js`): its speed changes evenly, and on the street grid its way leads over the corner if there is one.
"""

import numpy as np
import pandas as pd

from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import RunNotFound
from vefl_sim.experiment.experiment import Experiment

UNIT_M, UNIT_S = 0.1, 0.001
"""Units in which positions and times are embedded; speeds are in UNIT_M per second."""
_MAX_M, _MAX_S = 1e6, 1e7  # largest coordinates and times that are accepted


def tracks_of(mobility: pd.DataFrame, every_s: float) -> list[list[int]]:
    """Number of each vehicle, 1 if it is a CV, then all times, all x, all y and all speeds, each as differences.

    `every_s`: time between two rows; a new track starts where a vehicle was missing for more than a row. RunNotFound if
    a time or a position is impossible.
    """
    names = ["time_ns", "x_m", "y_m", "speed_mps", "vehicle"]
    rows = mobility[names].to_numpy(np.float64, na_value=np.nan) / [1e9, 1, 1, 1, 1]
    if not (np.abs(rows) <= [_MAX_S, _MAX_M, _MAX_M, _MAX_M, np.inf]).all():
        raise RunNotFound("The table mobility has a time, a position or a speed that is impossible: verify the run.")
    order = np.lexsort((rows[:, 0], rows[:, 4]))
    rows, connected = rows[order], mobility["connected"].to_numpy(bool, na_value=False)[order]
    gap_s, is_other = np.diff(rows[:, 0]), np.diff(rows[:, 4]) != 0
    starts = [0, *(np.flatnonzero(is_other | (gap_s <= 0) | (gap_s >= 1.5 * every_s)) + 1)] if len(rows) else []
    embedded = np.rint(rows[:, :4] / [UNIT_S, UNIT_M, UNIT_M, UNIT_M]).astype(np.int64)
    return [
        [int(rows[start, 4]), int(connected[start]), *np.diff(own, axis=0, prepend=0).T.ravel().tolist()]
        for start, own in zip(starts, np.split(embedded, starts[1:]), strict=False)
    ]


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


def bounds_of(points_m: Floats, radius_m: float) -> list[float]:
    """Left, lower, right and upper border of the map in m: the points near the circle, and all of the circle."""
    near_m = points_m[(np.abs(points_m) <= 1.35 * radius_m).all(axis=1)]
    shown_m = np.vstack([[[-radius_m, -radius_m], [radius_m, radius_m]], near_m])
    return [round(side, 1) for side in (*shown_m.min(axis=0).tolist(), *shown_m.max(axis=0).tolist())]
