"""The routes of all: a share of the vehicles passes through, the others wander."""

from functools import cached_property

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.traffic_tables import TrafficTable
from vefl_sim.mobility.grid.random_walk import Wandering
from vefl_sim.mobility.grid.roads import NONE, StreetGrid
from vefl_sim.mobility.grid.through_routes import Through


class GridRoutes:
    """Where vehicles turn, and how often that brings them to each edge."""

    def __init__(self, grid: StreetGrid, traffic: TrafficTable) -> None:
        self.grid, self._share = grid, traffic.through_share
        self._wandering, self._through = Wandering(grid, traffic.leaving_weight), Through(grid)

    def next_edge(self, edge: Ints, goal: Ints, uniform: Floats) -> Ints:
        """The edge taken after each of these, for a uniform random number each; NONE after a stub out."""
        chosen = self._wandering.next_edge(edge, uniform)
        (passing,) = (goal != NONE).nonzero()
        if passing.size:
            chosen[passing] = self._through.next_edge(edge[passing], goal[passing], uniform[passing])
        return chosen

    def goal(self, edge: Ints, uniform: Floats) -> Ints:
        """Where vehicles that are seen on these edges are going; NONE for those that wander."""
        if self._share == 0:
            return np.full(edge.size, NONE)
        column = (uniform[:, None] >= self._goal_threshold[edge]).sum(axis=1)
        goal: Ints = np.append(self._through.goals, NONE)[column - 1]
        return goal

    @cached_property
    def expected_visits(self) -> Floats:
        """How often a vehicle drives along each edge between arrival and departure, on average."""
        visits: Floats = self._visits.sum(axis=1)
        return visits

    def expected_metres(self, radius_m: float) -> float:
        """Expected distance that a vehicle drives within the circle, over all its visits."""
        return float(self.expected_visits @ self.grid.metres_within(radius_m))

    @cached_property
    def _visits(self) -> Floats:
        """(edges, 1 + goals): of those who wander, and of those who go to each goal."""
        wandering = (1 - self._share) * self._wandering.expected_visits[:, None]
        return np.hstack((wandering, self._share * self._through.visits)) if self._share else wandering

    @cached_property
    def _goal_threshold(self) -> Floats:
        """(edges, goals): cumulative shares of the columns of `_visits`, but for the last."""
        total = self._visits.cumsum(axis=1)
        threshold: Floats = total[:, :-1] / np.maximum(total[:, -1:], np.finfo(float).tiny)
        return threshold
