import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vefl_sim.mobility.grid.roads import NONE, StreetGrid
from vefl_sim.mobility.grid.routes import ThroughRoutes

GRID = StreetGrid.square(3, 100.0)
THROUGH = ThroughRoutes(GRID)


def place(edge, end):
    x, y = GRID.xy(np.array([edge]), np.array([100.0 if end else 0.0]))
    return x[0], y[0]


def drive(entry, goal, rng):
    """The edges that one vehicle takes from its entry to its goal."""
    edges = [entry]
    while edges[-1] != goal:
        following = THROUGH.next_edge(np.array([edges[-1]]), np.array([goal]), rng.random(1))[0]
        assert following != NONE
        edges.append(int(following))
        assert len(edges) < 20
    return edges


def elsewhere(entry):
    return [goal for goal in THROUGH.goals.tolist() if place(goal, True) != place(entry, False)]


@given(entry=st.sampled_from(GRID.entries.tolist()), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_everybody_gets_to_the_goal_by_a_shortest_way(entry, seed, data):
    goal = data.draw(st.sampled_from(elsewhere(entry)))
    edges = drive(entry, goal, np.random.default_rng(seed))
    (x0, y0), (x1, y1) = place(entry, True), place(goal, False)
    assert len(edges) - 2 == (abs(x1 - x0) + abs(y1 - y0)) / 100
    assert GRID.leads_out[edges].sum() == 1


def blocks_between(entry, goal):
    return sum(map(abs, np.subtract(place(entry, True), place(goal, False)))) / 100


def test_all_shortest_ways_are_taken():
    # From a corner to the opposite one of 3 × 3 blocks there are 6 choose 3 = 20 ways.
    entry, goal = next((e, g) for e in GRID.entries for g in elsewhere(e) if blocks_between(e, g) == 6)
    rng = np.random.default_rng(1)
    ways = {tuple(drive(int(entry), goal, rng)) for _ in range(400)}
    assert len(ways) == 20


def test_expected_visits_against_vehicles_that_drive():
    rng, vehicles = np.random.default_rng(1), 4000
    count = np.zeros((GRID.edges, THROUGH.goals.size))
    for _ in range(vehicles):
        entry = int(rng.choice(GRID.entries))
        goal = int(rng.choice(elsewhere(entry)))
        for edge in drive(entry, goal, rng):
            count[edge, THROUGH.goals.tolist().index(goal)] += 1
    np.testing.assert_allclose(count.sum(axis=1) / vehicles, THROUGH.visits.sum(axis=1), atol=0.03)
    np.testing.assert_allclose(count.sum(axis=0) / vehicles, THROUGH.visits.sum(axis=0), rtol=0.2)


def test_everybody_comes_in_once_and_leaves_once():
    assert THROUGH.visits[GRID.entries].sum() == pytest.approx(1)
    assert THROUGH.visits[THROUGH.goals].sum() == pytest.approx(1)
    np.testing.assert_allclose(np.diag(THROUGH.visits[THROUGH.goals]), 1 / THROUGH.goals.size)
