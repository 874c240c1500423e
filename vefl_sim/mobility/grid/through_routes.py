"""Routes of vehicles that pass through: from one place on the border to another, by a shortest way.

At every junction such a vehicle picks at random among the turns that bring it nearer to its goal, the stub over
which it leaves. On a grid there is always such a turn that is not a U-turn.
"""

from functools import cached_property

import numpy as np

from vefl_sim.core.arrays import Bools, Floats, Ints
from vefl_sim.mobility.grid.roads import STEP_X, STEP_Y, StreetGrid


class ThroughRoutes:
    """Shortest ways on a grid to all goals, which are its exits."""

    def __init__(self, grid: StreetGrid) -> None:
        self.grid = grid
        self.goals = grid.exits
        self._end_x_m = grid.start_x_m + grid.block_m * STEP_X[grid.heading]
        self._end_y_m = grid.start_y_m + grid.block_m * STEP_Y[grid.heading]

    def probability(self, edge: Ints, goal: Ints) -> Floats:
        """(…, 3): probability of LEFT, STRAIGHT, RIGHT after an edge on the way to a goal; 0 if the edge leads out."""
        turns = self.grid.turns[edge]
        nearer = (self._blocks_left(turns, goal[..., None]) < self._blocks_left(edge, goal)[..., None]) & (turns >= 0)
        useful = np.where(self.grid.leads_out[turns], turns == goal[..., None], nearer)
        share: Floats = useful / np.maximum(useful.sum(axis=-1, keepdims=True), 1)
        return share

    def next_edge(self, edge: Ints, goal: Ints, uniform: Floats) -> Ints:
        """Edge taken after each edge, by one uniform random number each; NONE after a stub that leads out."""
        threshold = self.probability(edge, goal).cumsum(axis=1)[:, :2]
        turn = (uniform[:, None] >= threshold).sum(axis=1)
        next_edge: Ints = self.grid.turns[edge, turn]
        return next_edge

    @cached_property
    def visits(self) -> Floats:
        """(edges, goals): how often a vehicle drives along an edge on its way to a goal, averaged over all vehicles.

        Vehicles enter at any entry and go to any goal except the stub beside that entry.
        """
        grid, goals = self.grid, self.goals
        share = self.probability(np.arange(grid.edges)[:, None], goals[None, :])
        (inner,) = (~grid.leads_out).nonzero()
        now = np.zeros((grid.edges, goals.size))
        elsewhere = ~self._beside(grid.entries[:, None], goals)
        now[grid.entries] = elsewhere / elsewhere.sum()
        visits = now.copy()
        while now.any():
            before, now = now, np.zeros_like(now)
            for turn in range(3):  # each edge is reached by a given turn from one other edge only
                now[grid.turns[inner, turn]] += before[inner] * share[inner, :, turn]
            visits += now
        return visits

    def _beside(self, entry: Ints, goal: Ints) -> Bools:
        """Whether an entry and a goal are the two lanes of the same street."""
        grid = self.grid
        x_m, y_m = grid.start_x_m[entry] - self._end_x_m[goal], grid.start_y_m[entry] - self._end_y_m[goal]
        beside: Bools = np.hypot(x_m, y_m) < grid.block_m / 2
        return beside

    def _blocks_left(self, edge: Ints, goal: Ints) -> Ints:
        """Blocks from the end of an edge to the junction at which the goal begins."""
        grid = self.grid
        metres = np.abs(self._end_x_m[edge] - grid.start_x_m[goal]) + np.abs(self._end_y_m[edge] - grid.start_y_m[goal])
        return np.rint(metres / grid.block_m).astype(np.int64)
