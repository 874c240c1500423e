"""The routes of all vehicles: a share passes through on a shortest way, the others take a random walk.

A random walk turns at random at every junction, until it leads out over the border. It is a Markov chain on edges, so
the expected distance that a vehicle drives on each edge is known exactly; it determines the arrival rate and the
initial positions at time 0. A vehicle that passes through picks at random among the turns that bring it nearer to its
goal, the stub over which it leaves. On a grid there is always such a turn that is not a U-turn.
"""

from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, eye_array
from scipy.sparse.linalg import spsolve

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.experiment import TrafficTable
from vefl_sim.mobility.grid.roads import NONE, StreetGrid

TURN_WEIGHTS = np.array([1.0, 2.0, 1.0])  # of LEFT, STRAIGHT, RIGHT in a random walk


class GridRoutes:
    """Chooses the turns of vehicles, and computes how often a vehicle visits each edge."""

    def __init__(self, grid: StreetGrid, traffic: TrafficTable) -> None:
        self.grid, self._share = grid, traffic.through_share
        self._random_walk = random_walk(grid, traffic.leaving_weight)

    def next_edge(self, edge: Ints, goal: Ints, uniform: Floats) -> Ints:
        """Edge taken after each edge, by one uniform random number each; NONE after a stub that leads out."""
        probability = self._random_walk[edge]
        (passing,) = (goal != NONE).nonzero()
        if passing.size:
            probability[passing] = shortest_ways(self.grid, edge[passing], goal[passing])
        turn = (uniform[:, None] >= probability.cumsum(axis=1)[:, :2]).sum(axis=1)
        chosen: Ints = self.grid.turns[edge, turn]
        return chosen

    def goal(self, edge: Ints, uniform: Floats) -> Ints:
        """Draw the exit stubs of vehicles that are on these edges; NONE for vehicles on a random walk."""
        if self._share == 0:
            return np.full(edge.size, NONE)
        column = (uniform[:, None] >= self._goal_threshold[edge]).sum(axis=1)
        goal: Ints = np.append(self.grid.exits, NONE)[column - 1]
        return goal

    @cached_property
    def expected_visits(self) -> Floats:
        """Mean number of times that a vehicle drives along each edge between arrival and departure."""
        visits: Floats = self._visits.sum(axis=1)
        return visits

    @property
    def metres_per_edge(self) -> Floats:
        """Expected total distance that a vehicle drives along each edge."""
        return self.expected_visits * self.grid.block_m

    def expected_metres(self, radius_m: float) -> float:
        """Expected total distance in m that a vehicle drives within the circle."""
        return float(self.expected_visits @ self.grid.metres_within(radius_m))

    @cached_property
    def _visits(self) -> Floats:
        """(edges, 1 + goals): expected visits of vehicles on a random walk, and of those that go to each goal."""
        wandering = (1 - self._share) * random_walk_visits(self.grid, self._random_walk)[:, None]
        return np.hstack((wandering, self._share * through_visits(self.grid))) if self._share else wandering

    @cached_property
    def _goal_threshold(self) -> Floats:
        """(edges, goals): cumulative shares of the columns of `_visits`, except the last."""
        total = self._visits.cumsum(axis=1)
        threshold: Floats = total[:, :-1] / np.maximum(total[:, -1:], np.finfo(float).tiny)
        return threshold


def random_walk(grid: StreetGrid, leaving_weight: float) -> Floats:
    """(edges, 3): probability of LEFT, STRAIGHT, RIGHT after an edge; undefined on stubs that lead out.

    leaving_weight: weight of a turn that leads out, relative to the same turn inside the grid; below 1, vehicles stay
    longer.
    """
    appeal = np.where(grid.leads_out, 0.0, 1.0)
    appeal[grid.exits] = leaving_weight
    weight = appeal[grid.turns] * TURN_WEIGHTS
    probability: Floats = weight / weight.sum(axis=1, keepdims=True)
    return probability


def random_walk_visits(grid: StreetGrid, probability: Floats) -> Floats:
    """Mean number of times that a vehicle on a random walk drives along each edge.

    Solves n = e + Pᵀn, where e is the uniform distribution over the entries.
    """
    inner = np.flatnonzero(~grid.leads_out)
    source, target = np.repeat(inner, 3), grid.turns[inner].ravel()
    moves = coo_array((probability[inner].ravel(), (target, source)), shape=(grid.edges, grid.edges))
    entering = np.zeros(grid.edges)
    entering[grid.entries] = 1 / grid.entries.size
    visits: Floats = spsolve((eye_array(grid.edges) - moves).tocsc(), entering)
    return visits


def shortest_ways(grid: StreetGrid, edge: Ints, goal: Ints) -> Floats:
    """(…, 3): probability of LEFT, STRAIGHT, RIGHT after an edge on the way to a goal; 0 if the edge leads out."""
    turns, goals = grid.turns[edge], goal[..., None]
    nearer = (_blocks_left(grid, turns, goals) < _blocks_left(grid, edge, goal)[..., None]) & (turns >= 0)
    useful = np.where(grid.leads_out[turns], turns == goals, nearer)
    share: Floats = useful / np.maximum(useful.sum(axis=-1, keepdims=True), 1)
    return share


def through_visits(grid: StreetGrid) -> Floats:
    """(edges, goals): how often a vehicle drives along an edge on its way to a goal, averaged over all vehicles.

    Vehicles enter at any entry and go to any goal except the stub beside that entry. Goals are the exits of the grid.
    """
    goals, entries, (inner,) = grid.exits, grid.entries, (~grid.leads_out).nonzero()
    share = shortest_ways(grid, np.arange(grid.edges)[:, None], goals[None, :])
    end_x_m, end_y_m = grid.xy(goals, grid.block_m)
    away_m = np.hypot(grid.start_x_m[entries, None] - end_x_m, grid.start_y_m[entries, None] - end_y_m)
    elsewhere = away_m > grid.block_m / 2
    now = np.zeros((grid.edges, goals.size))
    now[entries] = elsewhere / elsewhere.sum()
    visits = now.copy()
    while now.any():
        before, now = now, np.zeros_like(now)
        for turn in range(3):  # each edge is reached by a given turn from one other edge only
            now[grid.turns[inner, turn]] += before[inner] * share[inner, :, turn]
        visits += now
    return visits


def _blocks_left(grid: StreetGrid, edge: Ints, goal: Ints) -> Ints:
    """Blocks from the end of an edge to the junction at which the goal begins."""
    end_x_m, end_y_m = grid.xy(edge, grid.block_m)
    metres = np.abs(end_x_m - grid.start_x_m[goal]) + np.abs(end_y_m - grid.start_y_m[goal])
    return np.rint(metres / grid.block_m).astype(np.int64)
