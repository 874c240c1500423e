"""How many vehicles come, where they are at the start, and what their drivers are like."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment, RadioTable, RoadsTable, RunTable, TrafficTable
from vefl_sim.mobility.grid.fleet import DRAWS, Drivers
from vefl_sim.mobility.grid.roads import StreetGrid
from vefl_sim.mobility.grid.routes import GridRoutes
from vefl_sim.mobility.grid.traffic import Arrivals, demand, start_positions
from vefl_sim.mobility.idm import IdmParams


def demand_of(**tables):
    experiment = Experiment(run=RunTable(name="x"), **tables)
    routes = GridRoutes(StreetGrid.of(experiment.roads, experiment.radio.coverage_radius_m), experiment.traffic)
    return demand(experiment, routes), routes


def in_coverage(wanted, routes, radius=500.0):
    return wanted.vehicles_per_edge @ routes.grid.metres_within(radius) / routes.grid.block_m


@pytest.mark.parametrize(("signals", "low", "high"), [("none", 0.9, 1.0), ("fixed", 0.3, 0.5)])
def test_the_arrival_rate_is_that_of_littles_law_below_the_desired_speed(signals, low, high):
    wanted, routes = demand_of(traffic=TrafficTable(mean_in_coverage=20.0), roads=RoadsTable(signals=signals))
    assert in_coverage(wanted, routes) == pytest.approx(20.0)
    speed = wanted.arrivals_per_s * routes.expected_metres(500.0) / 20.0
    assert low * 20.12 < speed < high * 20.12


def test_a_given_rate_is_kept_and_fills_the_streets():
    wanted, routes = demand_of(traffic=TrafficTable(arrivals_per_s=0.125), roads=RoadsTable(signals="none"))
    assert wanted.arrivals_per_s == 0.125
    free = 0.125 * routes.expected_metres(500.0) / 20.12
    assert free < in_coverage(wanted, routes) < 1.2 * free


def test_a_circle_without_streets_is_refused():
    with pytest.raises(ExperimentError, match=r"radio\.coverage_radius_m = 50"):
        demand_of(roads=RoadsTable(blocks=3), radio=RadioTable(coverage_radius_m=50.0))


@pytest.mark.parametrize(
    ("traffic", "blocks", "message"),
    [
        ({"mean_in_coverage": 1e4}, 8, r"traffic\.mean_in_coverage = 10000: the streets in coverage hold \d+ vehicles"),
        ({"mean_in_coverage": 2000.0}, 50, r"vehicles on the whole grid of roads\.blocks = 50, and at most 20000"),
        ({"arrivals_per_s": 1e3}, 8, r"no more than 30 vehicles per second can come in over 36 streets: lower it"),
    ],
)
def test_more_than_the_streets_can_hold_is_refused(traffic, blocks, message):
    with pytest.raises(ExperimentError, match=message):
        demand_of(traffic=TrafficTable(**traffic), roads=RoadsTable(blocks=blocks))


GRID = StreetGrid.rectangle(3, 3, 128.0)
DRIVER = IdmParams(1.5, 2.0, 1.2, 2.0, 20.0, 5.0)
FIRST, LAST = 12.0, 121.0  # rear out of the last junction; stop line ahead


def place(count):
    return start_positions(count, GRID, DRIVER, np.random.default_rng(1))


def test_the_numbers_asked_for_are_placed_between_junctions():
    count = np.arange(GRID.edges) % 4
    edge, position = place(count)
    np.testing.assert_array_equal(np.bincount(edge, minlength=GRID.edges), count)
    assert position.min() >= FIRST
    assert position.max() <= LAST


@pytest.mark.parametrize(("each", "spacing"), [(2, 31.0), (4, 109 / 4), (12, 109 / 12), (16, 7.0)])
def test_spacing_is_that_of_free_traffic_while_there_is_room(each, spacing):
    # Free: 5 m + 2 m + 1.2 s · 20 m/s = 31 m from front to front. Then an equal share of 109 m, at least 7 m.
    edge, position = place(np.full(GRID.edges, each))
    ahead = np.diff(position)[np.diff(edge) == 0]
    assert ahead.min() >= spacing - 1e-9
    assert ahead.min() < spacing + 1


def test_what_does_not_fit_is_left_out():
    edge, _ = place(np.full(GRID.edges, 100))
    assert np.bincount(edge).tolist() == [16] * GRID.edges  # 1 + ⌊109 / 7⌋


def test_poisson():
    arrivals = Arrivals(2.0, np.arange(10, 14), np.random.default_rng(1))
    counts = []
    for second in range(1, 5001):
        before = len(arrivals.waiting)
        arrivals.queue_arrivals(float(second))
        counts.append(len(arrivals.waiting) - before)
    assert np.mean(counts) == pytest.approx(2.0, rel=0.03)  # 3 % is 1.5 standard errors
    assert np.var(counts) == pytest.approx(2.0, rel=0.1)
    assert np.bincount(arrivals.waiting)[10:] == pytest.approx(len(arrivals.waiting) / 4, rel=0.1)


def test_arrivals_do_not_depend_on_how_often_one_looks():
    often, rarely = (Arrivals(1.0, np.arange(5), np.random.default_rng(1)) for _ in range(2))
    for tick in range(1, 1001):
        often.queue_arrivals(tick / 10)
    rarely.queue_arrivals(100.0)
    assert often.waiting == rarely.waiting
    assert often.waiting


def test_one_vehicle_per_open_entry_in_order_of_arrival():
    arrivals = Arrivals(1.0, np.arange(5), np.random.default_rng(1))
    arrivals.waiting = [3, 1, 3, 2, 1]
    assert arrivals.admit([1, 3]) == [3, 1]
    assert arrivals.waiting == [3, 2, 1]
    assert arrivals.admit([]) == []
    assert arrivals.admit([1, 2, 3]) == [3, 2, 1]
    assert arrivals.waiting == []


NAMES = ("max_accel_mps2", "comfort_decel_mps2", "headway_s", "min_gap_m")


@given(spread=st.floats(0, 0.9), seed=st.integers(0, 1000))
def test_parameters_stay_within_the_spread_and_nobody_wants_more_than_u_max(spread, seed):
    drawn = Drivers.drawn(DRIVER, spread, np.random.default_rng(seed).random((50, DRAWS)))
    for name in NAMES:
        assert np.all(np.abs(getattr(drawn, name) / getattr(DRIVER, name) - 1) <= spread + 1e-12)
    assert np.all(drawn.desired_speed_mps <= 20.0)
    assert np.all(drawn.desired_speed_mps >= 20.0 * (1 - spread) - 1e-12)
