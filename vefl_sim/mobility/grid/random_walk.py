"""Random-walk routes: at every junction a vehicle turns at random, until its way leads out over the border.

This is a Markov chain on edges, so the expected distance that a vehicle drives on each edge is known exactly; it
determines the arrival rate and the initial positions at time 0.
"""

from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, eye_array
from scipy.sparse.linalg import spsolve

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.mobility.grid.roads import LEFT, RIGHT, STRAIGHT, StreetGrid

TURN_WEIGHTS = {LEFT: 1.0, STRAIGHT: 2.0, RIGHT: 1.0}


class RandomWalkRoutes:
    """Turning probabilities on a grid, and the expected visits that follow from them.

    leaving_weight: weight of a turn that leads out, relative to the same turn inside the grid; below 1, vehicles stay
    longer.
    """

    def __init__(self, grid: StreetGrid, leaving_weight: float) -> None:
        self.grid = grid
        weights = np.array([TURN_WEIGHTS[turn] for turn in range(3)])
        appeal = np.where(grid.leads_out, 0.0, 1.0)
        appeal[grid.exits] = leaving_weight
        weight = appeal[grid.turns] * weights
        self.probability: Floats = weight / weight.sum(axis=1, keepdims=True)
        """(edges, 3), in the order LEFT, STRAIGHT, RIGHT; undefined on stubs that lead out."""
        self._threshold = self.probability.cumsum(axis=1)[:, :2]

    def next_edge(self, edge: Ints, uniform: Floats) -> Ints:
        """Edge taken after each edge, by one uniform random number each; NONE after a stub that leads out."""
        turn = (uniform[:, None] >= self._threshold[edge]).sum(axis=1)
        next_edge: Ints = self.grid.turns[edge, turn]
        return next_edge

    @cached_property
    def expected_visits(self) -> Floats:
        """Mean number of times that a vehicle drives along each edge between arrival and departure.

        Solves n = e + Pᵀn, where e is the uniform distribution over the entries.
        """
        grid = self.grid
        inner = np.flatnonzero(~grid.leads_out)
        source, target = np.repeat(inner, 3), grid.turns[inner].ravel()
        share = self.probability[inner].ravel()
        moves = coo_array((share, (target, source)), shape=(grid.edges, grid.edges))
        entering = np.zeros(grid.edges)
        entering[grid.entries] = 1 / grid.entries.size
        visits: Floats = spsolve((eye_array(grid.edges) - moves).tocsc(), entering)
        return visits
