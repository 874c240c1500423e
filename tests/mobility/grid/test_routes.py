"""Random walks, shortest ways through the grid, and the mixture of both."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vefl_sim.experiment.experiment import TrafficTable
from vefl_sim.mobility.grid.roads import LEFT, NONE, RIGHT, STRAIGHT, StreetGrid
from vefl_sim.mobility.grid.routes import GridRoutes, random_walk, random_walk_visits, through_visits

GRID = StreetGrid.rectangle(3, 3, 100.0)
GOALS = GRID.exits
VISITS = through_visits(GRID)


def routes(share=0.0, leaving=0.1):
    return GridRoutes(GRID, TrafficTable(through_share=share, leaving_weight=leaving))


def wandering(leaving=0.1):
    return random_walk_visits(GRID, random_walk(GRID, leaving))


def test_visits_balance_at_every_edge():
    visits, probability, inflow = wandering(), random_walk(GRID, 0.1), np.zeros(GRID.edges)
    inflow[GRID.entries] = 1 / GRID.entries.size
    for edge in np.flatnonzero(~GRID.leads_out):
        for turn in range(3):
            inflow[GRID.turns[edge, turn]] += visits[edge] * probability[edge, turn]
    np.testing.assert_allclose(visits, inflow, atol=1e-9)


def test_next_edge_cuts_the_unit_interval_by_the_weights():
    inner = np.flatnonzero(~GRID.leads_out & ~GRID.leads_out[GRID.turns].any(axis=1))[0]
    uniform = np.array([0.0, 0.2499, 0.25, 0.7499, 0.75, 0.9999])
    turns = GRID.turns[inner, [LEFT, LEFT, STRAIGHT, STRAIGHT, RIGHT, RIGHT]]
    np.testing.assert_array_equal(routes().next_edge(np.full(6, inner), np.full(6, NONE), uniform), turns)


def test_a_way_out_is_rarer_by_the_leaving_weight():
    # Towards the border: left 1, out 2·0.5, right 1.
    towards = next(e for e in range(GRID.edges) if GRID.leads_out[GRID.turns[e]].tolist() == [False, True, False])
    np.testing.assert_allclose(random_walk(GRID, 0.5)[towards], 1 / 3)


def point(edge, end):
    x, y = GRID.xy(np.array([edge]), np.array([100.0 if end else 0.0]))
    return x[0], y[0]


def way_of(entry, goal, rng):
    """The edges that one vehicle takes from its entry to its goal."""
    edges, passing = [entry], routes()
    while edges[-1] != goal:
        following = passing.next_edge(np.array([edges[-1]]), np.array([goal]), rng.random(1))[0]
        assert following != NONE
        edges.append(int(following))
        assert len(edges) < 20
    return edges


def elsewhere(entry):
    return [goal for goal in GOALS.tolist() if point(goal, True) != point(entry, False)]


@given(entry=st.sampled_from(GRID.entries.tolist()), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_everybody_gets_to_the_goal_by_a_shortest_way(entry, seed, data):
    goal = data.draw(st.sampled_from(elsewhere(entry)))
    edges = way_of(entry, goal, np.random.default_rng(seed))
    (x0, y0), (x1, y1) = point(entry, True), point(goal, False)
    assert len(edges) - 2 == (abs(x1 - x0) + abs(y1 - y0)) / 100
    assert GRID.leads_out[edges].sum() == 1


def test_expected_visits_against_vehicles_that_pass_through():
    rng, vehicles = np.random.default_rng(1), 1500
    count = np.zeros(GRID.edges)
    for _ in range(vehicles):
        entry = int(rng.choice(GRID.entries))
        np.add.at(count, way_of(entry, int(rng.choice(elsewhere(entry))), rng), 1)
    np.testing.assert_allclose(count / vehicles, VISITS.sum(axis=1), atol=0.05)


def test_everybody_comes_in_once_and_leaves_once():
    assert VISITS[GRID.entries].sum() == pytest.approx(1)
    np.testing.assert_allclose(VISITS[GOALS], np.eye(GOALS.size) / GOALS.size)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_visits_are_those_of_both_kinds_by_their_shares(share):
    expected = (1 - share) * wandering() + share * VISITS.sum(axis=1)
    np.testing.assert_allclose(routes(share).expected_visits, expected)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_that_share_of_the_arrivals_has_a_goal(share):
    rng = np.random.default_rng(1)
    entry = rng.choice(GRID.entries, 4000)
    goal = routes(share).goal(entry, rng.random(4000))
    assert (goal != NONE).mean() == pytest.approx(share, abs=0.03)
    assert GRID.leads_out[goal[goal != NONE]].all()


def test_on_an_inner_edge_goals_are_those_that_lead_there():
    rng, edge = np.random.default_rng(1), int(np.flatnonzero(~GRID.leads_out)[7])
    goal = routes(1.0).goal(np.full(3000, edge), rng.random(3000))
    shares = np.array([(goal == g).mean() for g in GOALS])
    np.testing.assert_allclose(shares, VISITS[edge] / VISITS[edge].sum(), atol=0.03)


def test_vehicles_with_and_without_a_goal_choose_their_turns_alone():
    edge, goal, uniform = GRID.entries[:2], np.array([NONE, GOALS[5]]), np.array([0.3, 0.3])
    alone = [routes().next_edge(edge[[i]], goal[[i]], uniform[[i]])[0] for i in (0, 1)]
    assert routes().next_edge(edge, goal, uniform).tolist() == alone
