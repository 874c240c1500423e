import numpy as np
import pytest

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment, RunTable
from vefl_sim.experiment.radio_tables import RadioTable
from vefl_sim.experiment.traffic_tables import MobilityTable, RoadsTable, TrafficTable
from vefl_sim.mobility.grid.demand import demand
from vefl_sim.mobility.grid.roads import StreetGrid
from vefl_sim.mobility.grid.routes import GridRoutes


def demand_of(**tables):
    experiment = Experiment(run=RunTable(name="x"), **tables)
    routes = GridRoutes(StreetGrid.square(experiment.roads.blocks, experiment.roads.block_m), experiment.traffic)
    return demand(experiment), routes


def in_coverage(wanted, routes, radius=500.0):
    return wanted.vehicles_per_edge @ routes.grid.metres_within(radius) / routes.grid.block_m


@pytest.mark.slow
def test_the_edges_hold_the_mean_in_coverage():
    wanted, routes = demand_of(traffic=TrafficTable(mean_in_coverage=20.0))
    assert in_coverage(wanted, routes) == pytest.approx(20.0)


@pytest.mark.parametrize(("signals", "low", "high"), [("none", 0.9, 1.0), ("fixed", 0.3, 0.5)])
def test_the_arrival_rate_is_that_of_littles_law_below_the_desired_speed(signals, low, high):
    wanted, routes = demand_of(traffic=TrafficTable(mean_in_coverage=20.0), roads=RoadsTable(signals=signals))
    speed = wanted.arrivals_per_s * routes.expected_metres(500.0) / 20.0
    assert low * 20.12 < speed < high * 20.12


def test_vehicles_wait_for_each_other_more_in_dense_traffic():
    sparse, _ = demand_of(traffic=TrafficTable(mean_in_coverage=10.0), roads=RoadsTable(signals="none"))
    dense, _ = demand_of(traffic=TrafficTable(mean_in_coverage=100.0), roads=RoadsTable(signals="none"))
    assert dense.arrivals_per_s < 0.85 * 10 * sparse.arrivals_per_s


def test_a_given_rate_is_kept_and_fills_the_streets():
    wanted, routes = demand_of(traffic=TrafficTable(arrivals_per_s=0.125), roads=RoadsTable(signals="none"))
    assert wanted.arrivals_per_s == 0.125
    free = 0.125 * routes.expected_metres(500.0) / 20.12
    assert free < in_coverage(wanted, routes) < 1.2 * free


def test_slow_traffic_is_not_disturbed():
    wanted, routes = demand_of(mobility=MobilityTable(max_speed_mps=0.45), roads=RoadsTable(signals="none"))
    assert wanted.arrivals_per_s == pytest.approx(35 * 0.45 / routes.expected_metres(500.0), rel=0.02)


def test_draws_are_poisson_around_the_means():
    wanted, _ = demand_of()
    rng = np.random.default_rng(1)
    totals = [wanted.draw(rng).sum() for _ in range(400)]
    mean = wanted.vehicles_per_edge.sum()
    assert np.mean(totals) == pytest.approx(mean, rel=0.03)
    assert np.var(totals) == pytest.approx(mean, rel=0.25)


def test_a_circle_without_streets_is_refused():
    with pytest.raises(ExperimentError, match=r"radio\.coverage_radius_m = 50"):
        demand_of(roads=RoadsTable(blocks=3), radio=RadioTable(coverage_radius_m=50.0))


@pytest.mark.parametrize(
    ("traffic", "message"),
    [
        ({"mean_in_coverage": 1e4}, r"traffic\.mean_in_coverage = 10000: the streets in coverage hold \d+ vehicles"),
        ({"arrivals_per_s": 1e3}, r"traffic\.arrivals_per_s = 1000: .* no more than 30 vehicles per second"),
        ({"arrivals_per_s": 1e3, "warm_start": False}, r"no more than 30 vehicles per second can come in over 36"),
    ],
)
def test_more_than_the_streets_can_hold_is_refused(traffic, message):
    with pytest.raises(ExperimentError, match=message):
        demand_of(traffic=TrafficTable(**traffic))


def test_a_grid_with_too_many_vehicles_is_refused():
    with pytest.raises(ExperimentError, match=r"on the whole grid of roads\.blocks = 50"):
        demand_of(traffic=TrafficTable(mean_in_coverage=2000.0), roads=RoadsTable(blocks=50))
