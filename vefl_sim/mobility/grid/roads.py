"""The street grid: square blocks around the gNB, one lane each way, and stubs that lead out at the border.

Everything is per directed edge (one lane of one block), as arrays. All edges are one block long, measured
from the middle of a junction to the middle of the next. Every junction has four arms; on the border one of
them (at the corners two) is a stub, one block long, over which vehicles arrive and leave. Positions are drawn
on the centre line of the street, so that a turn is continuous in x and y; the two directions are still different
lanes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Bools, Floats, Ints
from vefl_sim.experiment.experiment import RoadsTable

EAST, NORTH, WEST, SOUTH = range(4)
LEFT, STRAIGHT, RIGHT = range(3)
STEP_X = np.array([1, 0, -1, 0])  # by heading
STEP_Y = np.array([0, 1, 0, -1])
TURN = np.array([1, 0, -1])  # added to the heading: counter-clockwise is left
NONE = -1

JUNCTION_M = 7.0  # from a stop line to the middle of its junction: two lanes of 3.5 m


class Ways(NamedTuple):
    """The properties of a grid that compiled code needs; arrays by edge, named as in `StreetGrid`."""

    block_m: float
    stop_line_m: float
    junction_m: float
    limit_m: Floats
    heading: Ints
    junction: Ints
    junctions: int


@dataclass(frozen=True)
class StreetGrid:
    """Directed edges of the grid; edge numbers index all arrays."""

    block_m: float
    start_x_m: Floats
    start_y_m: Floats
    heading: Ints
    """Direction of travel: EAST, NORTH, WEST or SOUTH."""
    junction: Ints
    """Number of the junction at the end; NONE on the stubs that lead out."""
    turns: Ints
    """(edges, 3): the edge reached by LEFT, STRAIGHT, RIGHT; NONE on the stubs that lead out."""
    entries: Ints
    """Stubs on which vehicles arrive."""
    leads_out: Bools
    """True for the stubs that lead out."""
    exits: Ints
    """Stubs that lead out over which vehicles actually leave."""

    @classmethod
    def of(cls, roads: RoadsTable, radius_m: float) -> "StreetGrid":
        """The grid of a [roads] table; `radius_m` is the coverage radius, needed for roads.exits = "outside"."""
        return cls.rectangle(*roads.blocks_xy, roads.block_m, radius_m if roads.exits == "outside" else 0.0)

    @classmethod
    def rectangle(cls, blocks_x: int, blocks_y: int, block_m: float, closed_m: float = 0.0) -> "StreetGrid":
        """A grid of square blocks, centred on (0, 0), with (blocks_x + 1)·(blocks_y + 1) junctions.

        closed_m: stubs whose outer end is nearer to the gNB than this are neither entries nor exits.
        """
        # Junctions have columns and rows 1 to blocks + 1; 0 and blocks + 2 are outer ends of stubs.
        column, row, heading = np.indices((blocks_x + 3, blocks_y + 3, 4)).reshape(3, -1)

        def is_junction(column: Ints, row: Ints) -> Bools:
            inside: Bools = (column >= 1) & (column <= blocks_x + 1) & (row >= 1) & (row <= blocks_y + 1)
            return inside

        touches = is_junction(column, row) | is_junction(column + STEP_X[heading], row + STEP_Y[heading])
        column, row, heading = column[touches], row[touches], heading[touches]
        to_column, to_row = column + STEP_X[heading], row + STEP_Y[heading]
        number = np.full((blocks_x + 3, blocks_y + 3, 4), NONE)
        number[column, row, heading] = np.arange(heading.size)
        leads_out = ~is_junction(to_column, to_row)
        turns = number[to_column[:, None], to_row[:, None], (heading[:, None] + TURN) % 4]
        turns[leads_out] = NONE
        start_x_m = block_m * (column.astype(np.float64) - 1 - blocks_x / 2)
        start_y_m = block_m * (row.astype(np.float64) - 1 - blocks_y / 2)
        end_x_m, end_y_m = start_x_m + block_m * STEP_X[heading], start_y_m + block_m * STEP_Y[heading]
        is_entry = ~is_junction(column, row)
        return cls(
            block_m=block_m,
            start_x_m=start_x_m,
            start_y_m=start_y_m,
            heading=heading,
            junction=np.where(leads_out, NONE, to_column * (blocks_y + 3) + to_row),
            turns=turns,
            entries=np.flatnonzero(is_entry & (np.hypot(start_x_m, start_y_m) >= closed_m)),
            leads_out=leads_out,
            exits=np.flatnonzero(leads_out & (np.hypot(end_x_m, end_y_m) >= closed_m)),
        )

    @property
    def edges(self) -> int:
        """Number of directed edges."""
        return self.heading.size

    @cached_property
    def limit_m(self) -> Floats:
        """Position up to which vehicles may drive on each edge without crossing a junction; infinite on a stub out."""
        return np.where(self.leads_out, np.inf, self.stop_line_m)

    @property
    def junction_m(self) -> float:
        """Half the width of a junction; smaller than JUNCTION_M on tiny blocks."""
        return min(JUNCTION_M, self.block_m / 4)

    @property
    def stop_line_m(self) -> float:
        """Position on an edge before which a vehicle waits until it may cross the junction."""
        return self.block_m - self.junction_m

    @cached_property
    def ways(self) -> Ways:
        """The grid in the form that compiled code accepts."""
        junctions = int(self.junction.max()) + 1
        return Ways(
            self.block_m, self.stop_line_m, self.junction_m, self.limit_m, self.heading, self.junction, junctions
        )

    def xy(self, edge: Ints, position_m: Floats | float) -> tuple[Floats, Floats]:
        """Coordinates x and y in m of positions on edges."""
        heading = self.heading[edge]
        x_m = self.start_x_m[edge] + STEP_X[heading] * position_m
        y_m = self.start_y_m[edge] + STEP_Y[heading] * position_m
        return x_m, y_m

    def metres_within(self, radius_m: float) -> Floats:
        """Length of each edge that lies in the circle around the gNB."""
        step_x, step_y = STEP_X[self.heading], STEP_Y[self.heading]
        along = self.start_x_m * step_x + self.start_y_m * step_y
        aside = self.start_x_m * step_y - self.start_y_m * step_x
        half_chord = np.sqrt(np.maximum(radius_m**2 - aside**2, 0.0))
        length: Floats = np.minimum(along + self.block_m, half_chord) - np.maximum(along, -half_chord)
        return np.maximum(length, 0.0)
