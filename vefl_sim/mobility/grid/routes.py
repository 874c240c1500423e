"""The routes of all vehicles: a share passes through on a shortest way, the others take a random walk."""

from functools import cached_property

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.traffic_tables import TrafficTable
from vefl_sim.mobility.grid.random_walk import RandomWalkRoutes
from vefl_sim.mobility.grid.roads import NONE, StreetGrid
from vefl_sim.mobility.grid.through_routes import ThroughRoutes


class GridRoutes:
    """Chooses the turns of vehicles, and computes how often a vehicle visits each edge."""

    def __init__(self, grid: StreetGrid, traffic: TrafficTable) -> None:
        self.grid, self._share = grid, traffic.through_share
        self._random_walk, self._through = RandomWalkRoutes(grid, traffic.leaving_weight), ThroughRoutes(grid)

    def next_edge(self, edge: Ints, goal: Ints, uniform: Floats) -> Ints:
        """Edge taken after each edge, by one uniform random number each; NONE after a stub that leads out."""
        chosen = self._random_walk.next_edge(edge, uniform)
        (passing,) = (goal != NONE).nonzero()
        if passing.size:
            chosen[passing] = self._through.next_edge(edge[passing], goal[passing], uniform[passing])
        return chosen

    def goal(self, edge: Ints, uniform: Floats) -> Ints:
        """Draw the exit stubs of vehicles that are on these edges; NONE for vehicles on a random walk."""
        if self._share == 0:
            return np.full(edge.size, NONE)
        column = (uniform[:, None] >= self._goal_threshold[edge]).sum(axis=1)
        goal: Ints = np.append(self._through.goals, NONE)[column - 1]
        return goal

    @cached_property
    def expected_visits(self) -> Floats:
        """Mean number of times that a vehicle drives along each edge between arrival and departure."""
        visits: Floats = self._visits.sum(axis=1)
        return visits

    def expected_metres(self, radius_m: float) -> float:
        """Expected total distance in m that a vehicle drives within the circle."""
        return float(self.expected_visits @ self.grid.metres_within(radius_m))

    @cached_property
    def _visits(self) -> Floats:
        """(edges, 1 + goals): expected visits of vehicles on a random walk, and of those that go to each goal."""
        random_walk = (1 - self._share) * self._random_walk.expected_visits[:, None]
        return np.hstack((random_walk, self._share * self._through.visits)) if self._share else random_walk

    @cached_property
    def _goal_threshold(self) -> Floats:
        """(edges, goals): cumulative shares of the columns of `_visits`, except the last."""
        total = self._visits.cumsum(axis=1)
        threshold: Floats = total[:, :-1] / np.maximum(total[:, -1:], np.finfo(float).tiny)
        return threshold
