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

from vefl_sim.core.arrays import Bools, Floats, Ints
from vefl_sim.experiment.experiment import TrafficTable
from vefl_sim.mobility.grid.roads import LEFT, NONE, RIGHT, STEP_X, STEP_Y, STRAIGHT, StreetGrid

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
