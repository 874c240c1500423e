"""Who may cross a junction: reservations, first come, first served.

A vehicle that would otherwise have to brake for its stop line asks for the junction. It is cleared when
nobody holds a path that meets its own, nobody who asked before waits for one, those ahead in its lane are
cleared, and there is room for it behind the junction. It holds its path until its tail has left the junction.
What is held follows from the state of the vehicles, so there is no table that could go stale. A signal is one
more condition in `_eligible`.
"""

import numpy as np

from vefl_sim.mobility.arrays import BoolArray, FloatArray, IntArray
from vefl_sim.mobility.driving import Driving
from vefl_sim.mobility.fleet import Fleet
from vefl_sim.mobility.lanes import Lanes
from vefl_sim.mobility.roads import NONE


def _paths_meet() -> BoolArray:
    """(16, 16): whether two paths through a junction merge or cross; path 4·(heading in) + (heading out).

    With traffic on the right, counter-clockwise around a junction, the arm in direction d has its way out at
    point 2d and its way in at 2d + 1. Paths are chords between these points. Those with the same start are in
    the same lane and follow each other.
    """
    heading_in, heading_out = np.divmod(np.arange(16), 4)
    start, end = 2 * ((heading_in + 2) % 4) + 1, 2 * heading_out
    span = (end - start) % 8

    def within(point: IntArray) -> BoolArray:
        """Whether a point (column) is strictly between start and end of a path (row), counter-clockwise."""
        offset: IntArray = (point - start[:, None]) % 8
        between: BoolArray = (offset > 0) & (offset < span[:, None])
        return between

    crosses: BoolArray = within(start) != within(end)
    merges: BoolArray = end[:, None] == end
    other_lane: BoolArray = start[:, None] != start
    return (crosses | merges) & other_lane


PATHS_MEET = _paths_meet()


class Junctions:
    """Clears vehicles to cross, step by step."""

    def __init__(self, driving: Driving) -> None:
        grid, params = driving.grid, driving.params
        self._driving, self._grid = driving, grid
        self._inside_m = grid.junction_m + params.length_m
        self._place_m = params.length_m + params.min_gap_m
        self._way_in = 16 * grid.junction + 4 * grid.heading

    def clear(self, fleet: Fleet, lanes: Lanes, step: int) -> int:
        """Note who asks for the junction ahead, clear those who may go, and return how many these are."""
        (asking,) = self._driving.must_ask(fleet).nonzero()
        if not asking.size:
            return 0
        asked = fleet.asked_step[asking]
        fleet.asked_step[asking] = asked = np.where(asked == NONE, step, asked)
        asking = asking[asked.argsort(kind="stable")]
        asking = asking[self._eligible(asking, fleet, lanes)]
        going = asking[self._unopposed(asking, fleet)]
        fleet.cleared[going] = True
        fleet.limit_m[going] = self._grid.block_m + self._grid.limit_m[fleet.next_edge[going]]
        return going.size

    def _eligible(self, asking: IntArray, fleet: Fleet, lanes: Lanes) -> BoolArray:
        """Who could cross if nobody else wanted to: the lane ahead is cleared, and there is room behind."""
        leader = lanes.leader[asking]
        in_lane: BoolArray = (leader != NONE) & (fleet.edge[leader] == fleet.edge[asking])
        return self._has_room(asking, fleet, lanes) & ~(in_lane & ~fleet.cleared[leader])

    def _has_room(self, asking: IntArray, fleet: Fleet, lanes: Lanes) -> BoolArray:
        """Whether a place behind the junction will be free even if everybody ahead stops now.

        The gap counts twice: IDM closes the last centimetres of it only asymptotically.
        """
        target = fleet.next_edge[asking]
        last, back_m = lanes.last_on(target)
        roll_m = fleet.speed_mps[last] ** 2 / (2 * self._driving.emergency_decel_mps2)
        coming = (fleet.next_edge[fleet.cleared] == target[:, None]).sum(axis=1)
        end_m: FloatArray = np.minimum(back_m + roll_m, self._grid.limit_m[target]) - coming * self._place_m
        return end_m >= self._inside_m + 2 * self._driving.params.min_gap_m

    def _unopposed(self, asking: IntArray, fleet: Fleet) -> BoolArray:
        """Whose path meets neither one that is held nor one that somebody before in this list asks for."""
        path = self._path(fleet.edge[asking], fleet.next_edge[asking])
        held = self._held(fleet)
        opposed = _meet(path, np.concatenate((held, path)))
        turn = np.arange(path.size)
        opposed[:, held.size :] &= turn < turn[:, None]
        return np.logical_not(opposed.any(axis=1))

    def _held(self, fleet: Fleet) -> IntArray:
        """Paths of those who are cleared, and of those whose tail has not left the junction."""
        (cleared,) = fleet.cleared.nonzero()
        (leaving,) = ((fleet.position_m < self._inside_m) & (fleet.came_from != NONE)).nonzero()
        edge = np.concatenate((fleet.edge[cleared], fleet.came_from[leaving]))
        return self._path(edge, np.concatenate((fleet.next_edge[cleared], fleet.edge[leaving])))

    def _path(self, edge: IntArray, next_edge: IntArray) -> IntArray:
        """16·(junction) + (index into PATHS_MEET)."""
        return self._way_in[edge] + self._grid.heading[next_edge]


def _meet(some: IntArray, others: IntArray) -> BoolArray:
    """(some, others): whether two paths are of the same junction and meet there."""
    some = some[:, None]
    meet: BoolArray = PATHS_MEET[some & 15, others & 15] & (some >> 4 == others >> 4)
    return meet
