"""Routes: at every junction a vehicle turns at random, until its way leads out over the border.

This is a Markov chain on edges, so there is an exact answer to "how far does a vehicle drive, and where"; it
sets the arrival rate and populates the streets at time 0.
"""

from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, eye_array
from scipy.sparse.linalg import spsolve

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.mobility.grid.roads import LEFT, RIGHT, STRAIGHT, StreetGrid

TURN_WEIGHTS = {LEFT: 1.0, STRAIGHT: 2.0, RIGHT: 1.0}


class Wandering:
    """Turning probabilities on a grid, and what follows from them.

    leaving_weight: of a way out over the border against the same turn inside; vehicles have something to do downtown.
    """

    def __init__(self, grid: StreetGrid, leaving_weight: float) -> None:
        self.grid = grid
        weights = np.array([TURN_WEIGHTS[turn] for turn in range(3)])
        appeal = np.where(grid.leads_out, 0.0, 1.0)
        appeal[grid.exits] = leaving_weight
        weight = appeal[grid.turns] * weights
        self.probability: Floats = weight / weight.sum(axis=1, keepdims=True)
        """(edges, 3), in the order LEFT, STRAIGHT, RIGHT; without meaning on stubs that lead out."""
        self._threshold = self.probability.cumsum(axis=1)[:, :2]

    def next_edge(self, edge: Ints, uniform: Floats) -> Ints:
        """The edge taken after each of these, for a uniform random number each; NONE after a stub out."""
        turn = (uniform[:, None] >= self._threshold[edge]).sum(axis=1)
        next_edge: Ints = self.grid.turns[edge, turn]
        return next_edge

    @cached_property
    def expected_visits(self) -> Floats:
        """How often a vehicle drives along each edge between arrival and departure, on average.

        Solves n = e + Pᵀn with e the uniform choice of an entry.
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
