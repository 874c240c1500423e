from itertools import pairwise

import numpy as np
import pytest

from tests.mobility.grid.makers import fleet_of
from vefl_sim.mobility.grid.roads import NONE, Ways
from vefl_sim.mobility.grid.step import line_up
from vefl_sim.mobility.idm import IdmParams

EDGES, BLOCK, LENGTH = 80, 100.0, 5.0
DRIVER = IdmParams(1.5, 2.0, 1.2, 2.0, 15.0, LENGTH)
ZEROS = np.zeros(EDGES, np.int64)
WAYS = Ways(BLOCK, 93.0, 7.0, np.full(EDGES, 93.0), ZEROS, ZEROS, 1)


def lanes_of(edge, position, came_from):
    return line_up(fleet_of(edge, position, came_from, DRIVER), WAYS, LENGTH)


def on_lane(fleet, edge):
    """Position and index of all vehicles with a part on this lane, from the rear."""
    here = []
    for i in range(fleet.size):
        if fleet.edge[i] == edge:
            here.append((fleet.position_m[i], i))
        if fleet.came_from[i] == edge and fleet.position_m[i] < LENGTH:
            here.append((fleet.position_m[i] + BLOCK, i))
    return sorted(here)


def random_fleet(rng):
    count = int(rng.integers(0, 40))
    edge = rng.integers(0, 12, count)
    came_from = rng.permutation(40)[:count]  # at most one vehicle with its rear on each previous lane, as on the grid
    position = rng.choice([rng.random(count) * BLOCK, rng.random(count) * LENGTH])
    return fleet_of(edge, position, np.where((rng.random(count) < 0.7) & (came_from != edge), came_from, NONE), DRIVER)


@pytest.mark.parametrize("seed", range(20))
def test_leaders_and_last_ones_by_searching_lane_by_lane(seed):
    fleet = random_fleet(np.random.default_rng(seed))
    lanes = line_up(fleet, WAYS, LENGTH)
    leader, gap = np.full(fleet.size, NONE), np.full(fleet.size, np.inf)
    for edge in range(70):
        here = on_lane(fleet, edge)
        for (behind, i), (ahead, j) in pairwise(here):
            leader[i], gap[i] = j, ahead - LENGTH - behind
        assert lanes.last[edge] == (here[0][1] if here else NONE)
        assert lanes.back_m[edge] == pytest.approx(here[0][0] - LENGTH if here else np.inf)
    np.testing.assert_array_equal(lanes.leader, leader)
    np.testing.assert_allclose(lanes.gap_m, gap, atol=1e-9)


def test_a_tail_is_seen_by_the_lane_it_came_from():
    # Vehicle 0 is 3 m into lane 7, so its last 2 m are still on lane 4, where vehicle 1 follows.
    lanes = lanes_of([7, 4], [3.0, 90.0], [4, NONE])
    assert lanes.leader.tolist() == [NONE, 0]
    assert lanes.gap_m[1] == pytest.approx(8.0)


def test_last_ones_by_edge():
    lanes = lanes_of([7], [50.0], [NONE])
    assert lanes.last[6:9].tolist() == [NONE, 0, NONE]
    assert lanes.back_m[6:9].tolist() == [np.inf, 45.0, np.inf]
