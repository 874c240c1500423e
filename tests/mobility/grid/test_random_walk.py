import numpy as np
import pytest

from vefl_sim.mobility.grid.roads import LEFT, NONE, RIGHT, STRAIGHT, StreetGrid
from vefl_sim.mobility.grid.routes import TURN_WEIGHTS, RandomWalkRoutes

GRID = StreetGrid.square(3, 100.0)


def visits_by_driving(routes, vehicles, rng):
    """Estimate the expected visits by simulating the routes of vehicles, one at a time."""
    count = np.zeros(GRID.edges)
    for _ in range(vehicles):
        edge = rng.choice(GRID.entries)
        while edge != NONE:
            count[edge] += 1
            edge = routes.next_edge(np.array([edge]), rng.random(1))[0]
    return count / vehicles


def test_expected_visits_against_vehicles_that_drive():
    routes = RandomWalkRoutes(GRID, leaving_weight=0.5)
    vehicles = 3000
    driven = visits_by_driving(routes, vehicles, np.random.default_rng(1))
    expected = routes.expected_visits
    # A vehicle passes an edge a few times at most, so the variance of a count is near its mean.
    assert np.abs(driven - expected).max() < 6 * np.sqrt(expected.max() / vehicles)
    assert driven.sum() == pytest.approx(expected.sum(), rel=0.05)


def test_everybody_leaves_once():
    visits = RandomWalkRoutes(GRID, 0.1).expected_visits
    assert visits[GRID.leads_out].sum() == pytest.approx(1)
    assert visits[GRID.entries].sum() == pytest.approx(1)


def test_visits_balance_at_every_edge():
    routes = RandomWalkRoutes(GRID, 0.1)
    visits, inflow = routes.expected_visits, np.zeros(GRID.edges)
    inflow[GRID.entries] = 1 / GRID.entries.size
    for edge in np.flatnonzero(~GRID.leads_out):
        for turn in range(3):
            inflow[GRID.turns[edge, turn]] += visits[edge] * routes.probability[edge, turn]
    np.testing.assert_allclose(visits, inflow, atol=1e-9)


def test_without_a_reason_to_stay_flow_is_uniform():
    # Turns are symmetric, so with weight 1 every lane carries the same flow: that of one entry.
    visits = RandomWalkRoutes(GRID, leaving_weight=1.0).expected_visits
    np.testing.assert_allclose(visits, 1 / GRID.entries.size, atol=1e-9)


def test_next_edge_cuts_the_unit_interval_by_the_weights():
    inner = np.flatnonzero(~GRID.leads_out & ~GRID.leads_out[GRID.turns].any(axis=1))[0]
    assert TURN_WEIGHTS == {LEFT: 1, STRAIGHT: 2, RIGHT: 1}
    uniform = np.array([0.0, 0.2499, 0.25, 0.7499, 0.75, 0.9999])
    turns = GRID.turns[inner, [LEFT, LEFT, STRAIGHT, STRAIGHT, RIGHT, RIGHT]]
    np.testing.assert_array_equal(RandomWalkRoutes(GRID, 0.1).next_edge(np.full(6, inner), uniform), turns)


def test_a_way_out_is_rarer_by_the_leaving_weight():
    # Towards the border: left 1, out 2·0.5, right 1.
    towards = next(e for e in range(GRID.edges) if GRID.leads_out[GRID.turns[e]].tolist() == [False, True, False])
    np.testing.assert_allclose(RandomWalkRoutes(GRID, 0.5).probability[towards], 1 / 3)
