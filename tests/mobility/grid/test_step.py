"""One step of all vehicles: their order in the lanes, and the compiled step against its plain twin."""

from itertools import pairwise

import numpy as np
import pytest

from tests.mobility.grid.makers import fleet_of
from tests.mobility.grid.plain_step import PlainStep, vehicles_of
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment, MobilityTable, RoadsTable, RunTable, TrafficTable
from vefl_sim.mobility.grid.roads import NONE, Ways
from vefl_sim.mobility.grid.step import line_up, step
from vefl_sim.mobility.grid.traffic import IdmTraffic
from vefl_sim.mobility.idm import IdmParams

EDGES, BLOCK, LENGTH = 80, 100.0, 5.0
DRIVER = IdmParams(1.5, 2.0, 1.2, 2.0, 15.0, LENGTH)
ZEROS = np.zeros(EDGES, np.int64)
WAYS = Ways(BLOCK, 93.0, 7.0, np.full(EDGES, 93.0), ZEROS, ZEROS, 1)


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


COLUMNS = ("position_m", "speed_mps", "limit_m", "cleared", "asked_step")
CASES = [
    # seed, speed, step, vehicles, signals, spread, through
    (1, 20.12, 0.1, 35.0, "fixed", 0.0, 0.0),
    (2, 20.12, 0.1, 120.0, "fixed", 0.3, 0.5),
    (3, 26.82, 0.5, 60.0, "none", 0.0, 0.0),
    (4, 11.18, 0.25, 120.0, "none", 0.5, 1.0),
    (5, 8.0, 1.0, 80.0, "fixed", 0.9, 0.2),
]


@pytest.mark.parametrize(("seed", "speed", "dt", "vehicles", "signals", "spread", "through"), CASES)
def test_a_step_is_that_of_its_plain_twin(seed, speed, dt, vehicles, signals, spread, through):
    experiment = Experiment(
        run=RunTable(name="x"),
        roads=RoadsTable(signals=signals, green_s=8.0),
        mobility=MobilityTable(max_speed_mps=speed, step_s=dt, driver_spread=spread),
        traffic=TrafficTable(mean_in_coverage=vehicles, through_share=through),
    )
    traffic = IdmTraffic(experiment, Streams(seed))
    streets, moved = traffic.streets, 0.0
    for number in range(60):
        traffic.advance()
        if number % 6:
            continue
        fleet = streets.fleet._replace(**{name: getattr(streets.fleet, name).copy() for name in COLUMNS})
        inputs = fleet, streets._ways, streets.signals, streets.rules, streets._now
        plain = vehicles_of(fleet)
        PlainStep(plain, *inputs[1:]).run()
        start = fleet.position_m.copy()
        over = step(*inputs)
        assert over == (fleet.position_m >= 128.0).any()
        for name in COLUMNS:
            expected = np.array([vehicle[name] for vehicle in plain])
            np.testing.assert_allclose(getattr(fleet, name), expected, atol=1e-9, rtol=0, err_msg=name)
        moved += (fleet.position_m - start).sum()
    assert moved > 10
