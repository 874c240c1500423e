from itertools import pairwise

import numpy as np
import pytest

from vefl_sim.mobility.fleet import Fleet
from vefl_sim.mobility.lanes import Lanes
from vefl_sim.mobility.roads import NONE

BLOCK, LENGTH = 100.0, 5.0


def fleet_of(edge, position, came_from):
    count = len(edge)
    return Fleet(
        vehicle=np.arange(1, count + 1),
        connected=np.ones(count, np.bool_),
        edge=np.array(edge, np.int64),
        position_m=np.array(position, np.float64),
        speed_mps=np.zeros(count),
        next_edge=np.full(count, NONE),
        came_from=np.array(came_from, np.int64),
        limit_m=np.full(count, np.inf),
        cleared=np.zeros(count, np.bool_),
        asked_step=np.full(count, NONE),
    )


def on_lane(fleet, edge):
    """Position and index of everybody with a part on this lane, from the rear."""
    here = []
    for i in range(len(fleet)):
        if fleet.edge[i] == edge:
            here.append((fleet.position_m[i], i))
        if fleet.came_from[i] == edge and fleet.position_m[i] < LENGTH:
            here.append((fleet.position_m[i] + BLOCK, i))
    return sorted(here)


def random_fleet(rng):
    count = int(rng.integers(0, 40))
    came_from = rng.permutation(60)[:count] + 10  # at most one tail on each lane, as in the streets
    return fleet_of(
        rng.integers(0, 12, count),
        rng.choice([rng.random(count) * BLOCK, rng.random(count) * LENGTH]),
        np.where(rng.random(count) < 0.7, came_from % 70, NONE),
    )


@pytest.mark.parametrize("seed", range(20))
def test_leaders_and_last_ones_by_searching_lane_by_lane(seed):
    fleet = random_fleet(np.random.default_rng(seed))
    lanes = Lanes(fleet, BLOCK, LENGTH)
    leader, gap = np.full(len(fleet), NONE), np.full(len(fleet), np.inf)
    for edge in range(70):
        here = on_lane(fleet, edge)
        for (behind, i), (ahead, j) in pairwise(here):
            leader[i], gap[i] = j, ahead - LENGTH - behind
        last, back = lanes.last_on(np.array([edge]))
        assert last[0] == (here[0][1] if here else NONE)
        assert back[0] == pytest.approx(here[0][0] - LENGTH if here else np.inf)
    np.testing.assert_array_equal(lanes.leader, leader)
    np.testing.assert_allclose(lanes.gap_m, gap, atol=1e-9)


def test_a_tail_is_seen_by_the_lane_it_came_from():
    # Vehicle 0 is 3 m into lane 7, so its last 2 m are still on lane 4, where vehicle 1 follows.
    lanes = Lanes(fleet_of([7, 4], [3.0, 90.0], [4, NONE]), BLOCK, LENGTH)
    assert lanes.leader.tolist() == [NONE, 0]
    assert lanes.gap_m[1] == pytest.approx(8.0)


def test_nobody_on_edge_none():
    lanes = Lanes(fleet_of([7], [50.0], [NONE]), BLOCK, LENGTH)
    last, back = lanes.last_on(np.array([NONE, 7, 8]))
    assert last.tolist() == [NONE, 0, NONE]
    assert back.tolist() == [np.inf, 45.0, np.inf]
