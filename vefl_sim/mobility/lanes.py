"""Who drives behind whom: the vehicles of one instant, sorted along their lanes."""

import numpy as np

from vefl_sim.mobility.arrays import FloatArray, IntArray
from vefl_sim.mobility.fleet import Fleet
from vefl_sim.mobility.roads import NONE

_NOWHERE = np.array([np.iinfo(np.int64).max])  # ends the list of edges, so that no search runs off it


class Lanes:
    """A snapshot of a fleet by lane.

    A vehicle that has crossed a junction while its tail is still on the lane before is listed on both, beyond
    the end of the old one, so that whoever comes next there does not run into the tail, wherever they turn.
    """

    def __init__(self, fleet: Fleet, block_m: float, length_m: float) -> None:
        count = len(fleet)
        (tails,) = ((fleet.position_m < length_m) & (fleet.came_from != NONE)).nonzero()
        owner = np.concatenate((np.arange(count), tails))
        edge = np.concatenate((fleet.edge, fleet.came_from[tails], _NOWHERE))
        position_m = np.concatenate((fleet.position_m, fleet.position_m[tails] + block_m))
        order = np.lexsort((position_m, edge[:-1]))
        self._owner = owner[order]
        self._back_m = position_m[order] - length_m
        self._edge = edge
        self._edge[:-1] = edge[order]
        (behind,) = (self._edge[1:-1] == self._edge[:-2]).nonzero()
        follower = self._owner[behind]
        self.leader: IntArray = np.full(count, NONE)
        """Index of the vehicle ahead in the same lane, or NONE."""
        self.leader[follower] = self._owner[behind + 1]
        self.gap_m: FloatArray = np.full(count, np.inf)
        """Distance from the front bumper to its back bumper; infinite without one."""
        self.gap_m[follower] = self._back_m[behind + 1] - fleet.position_m[follower]

    def last_on(self, edge: IntArray) -> tuple[IntArray, FloatArray]:
        """The vehicle that entered each of these edges last (index or NONE), and where its back bumper is.

        That is at infinity on an empty edge and on edge NONE.
        """
        owner, back_m = np.full(edge.size, NONE), np.full(edge.size, np.inf)
        place = self._edge.searchsorted(edge)
        (there,) = (self._edge[place] == edge).nonzero()
        found = place[there]
        owner[there], back_m[there] = self._owner[found], self._back_m[found]
        return owner, back_m
