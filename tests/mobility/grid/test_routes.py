import numpy as np
import pytest

from vefl_sim.experiment.traffic_tables import TrafficTable
from vefl_sim.mobility.grid.roads import NONE, StreetGrid
from vefl_sim.mobility.grid.routes import GridRoutes, RandomWalkRoutes, ThroughRoutes

GRID = StreetGrid.square(3, 100.0)


def routes(share=0.0, leaving=0.1):
    return GridRoutes(GRID, TrafficTable(through_share=share, leaving_weight=leaving))


def test_visits_are_those_of_both_kinds_by_their_shares():
    wander, through = RandomWalkRoutes(GRID, 0.1).expected_visits, ThroughRoutes(GRID).visits.sum(axis=1)
    np.testing.assert_allclose(routes(0.25).expected_visits, 0.75 * wander + 0.25 * through)
    np.testing.assert_allclose(routes(1.0).expected_visits, through)
    np.testing.assert_allclose(routes(0.0).expected_visits, wander)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_that_share_of_the_arrivals_has_a_goal(share):
    rng = np.random.default_rng(1)
    entry = rng.choice(GRID.entries, 4000)
    goal = routes(share).goal(entry, rng.random(4000))
    assert (goal != NONE).mean() == pytest.approx(share, abs=0.03)
    assert GRID.leads_out[goal[goal != NONE]].all()


def test_on_an_inner_edge_goals_are_those_that_lead_there():
    rng, through = np.random.default_rng(1), ThroughRoutes(GRID)
    edge = int(np.flatnonzero(~GRID.leads_out)[7])
    goal = routes(1.0).goal(np.full(3000, edge), rng.random(3000))
    shares = np.array([(goal == g).mean() for g in through.goals])
    np.testing.assert_allclose(shares, through.visits[edge] / through.visits[edge].sum(), atol=0.03)


def test_who_has_a_goal_turns_towards_it_and_the_others_wander():
    entry = GRID.entries[:2]
    mixed = routes(0.5)
    goal = np.array([NONE, ThroughRoutes(GRID).goals[5]])
    uniform = np.array([0.3, 0.3])
    expected = [
        RandomWalkRoutes(GRID, 0.1).next_edge(entry[:1], uniform[:1]),
        ThroughRoutes(GRID).next_edge(entry[1:], goal[1:], uniform[1:]),
    ]
    assert mixed.next_edge(entry, goal, uniform).tolist() == np.concatenate(expected).tolist()


def test_distance_within_grows_with_the_radius_and_with_staying():
    stays, passes = routes(leaving=0.1), routes(leaving=1.0)
    metres = [stays.expected_metres(radius) for radius in (49.0, 60.0, 150.0, 1e6)]
    assert metres[0] == 0
    assert np.all(np.diff(metres) > 0)
    assert stays.expected_metres(150.0) > 2 * passes.expected_metres(150.0)
