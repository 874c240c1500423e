"""How much traffic there is: the arrival rate, and how many vehicles that puts on each edge."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment, RunTable
from vefl_sim.experiment.traffic_tables import MobilityTable, RoadsTable, TrafficTable
from vefl_sim.mobility.grid.drivers import typical_driver
from vefl_sim.mobility.grid.engine import TrafficEngine
from vefl_sim.mobility.grid.roads import StreetGrid
from vefl_sim.mobility.grid.routes import GridRoutes
from vefl_sim.mobility.idm import IdmParams

PILOT_STEP_M = 2.0  # what a free vehicle drives in a step, so that slow traffic is not stepped finely
PILOT_STEPS = 2000
PILOT_VEHICLES = 1000  # with more, fewer steps see as much
MOST_VEHICLES = 20_000
CRAWL = 0.05  # share of the desired speed; even in a jam the rate is one that could flow at this


@dataclass(frozen=True)
class Demand:
    """Arrivals at the border, and the state that they keep up."""

    arrivals_per_s: float
    vehicles_per_edge: Floats
    """Mean number of vehicles on each edge at any time."""

    def draw(self, rng: np.random.Generator) -> Ints:
        """Numbers of vehicles on each edge at one instant: independent and Poisson, as arrivals are."""
        return rng.poisson(self.vehicles_per_edge)


def demand(experiment: Experiment) -> Demand:
    """The arrival rate that was asked for, or the one that keeps up `mean_in_coverage`.

    By Little's law, mean number in coverage = arrival rate × expected distance driven there / mean speed. The
    distance is exact (`GridRoutes`). The mean speed is below the desired speed because vehicles wait for each
    other and at signals; a pilot run at the wanted density measures it.
    """
    area = _Area(experiment.roads, experiment.mobility, experiment.traffic, experiment.radio.coverage_radius_m)
    rate_per_s = experiment.traffic.arrivals_per_s
    if rate_per_s is None:
        density = experiment.mean_in_coverage / _metres_in_coverage(area)
        _check_room(area, experiment.mean_in_coverage)
        _check_total(area, density)
        return Demand(density * _mean_speed_mps(area, density), density * area.metres_per_edge)
    _check_inflow(area, rate_per_s)
    if not experiment.traffic.warm_start:
        return Demand(rate_per_s, np.zeros(area.routes.grid.edges))  # nobody needs to know
    density = rate_per_s / experiment.mobility.max_speed_mps
    _check_total(area, density)
    density = rate_per_s / _mean_speed_mps(area, density)
    return Demand(rate_per_s, density * area.metres_per_edge)


@dataclass(frozen=True)
class _Area:
    """What the mean speed depends on, besides the density."""

    roads: RoadsTable
    mobility: MobilityTable
    traffic: TrafficTable
    radius_m: float

    @cached_property
    def routes(self) -> GridRoutes:
        return GridRoutes(StreetGrid.of(self.roads, self.radius_m), self.traffic)

    @property
    def experiment(self) -> Experiment:
        return Experiment(run=RunTable(name="pilot"), roads=self.roads, mobility=self.mobility, traffic=self.traffic)

    @property
    def metres_per_edge(self) -> Floats:
        """Expected distance that a vehicle drives along each edge in all."""
        return self.routes.expected_visits * self.roads.block_m


def _check_inflow(area: _Area, rate_per_s: float) -> None:
    """Everybody keeps the headway, so that only so many can come in."""
    entries = area.routes.grid.entries.size
    most_per_s = entries / area.mobility.headway_s
    if rate_per_s > most_per_s:
        raise ExperimentError(
            f"traffic.arrivals_per_s = {rate_per_s:g}: with mobility.headway_s = {area.mobility.headway_s:g} no more "
            f"than {most_per_s:.3g} vehicles per second can come in over {entries} streets: lower it."
        )


def _check_room(area: _Area, vehicles: float) -> None:
    """Bumper to bumper is the most that the streets in coverage can hold."""
    place_m = area.mobility.length_m + area.mobility.min_gap_m
    most = int(area.routes.grid.metres_within(area.radius_m).sum() / place_m)
    if vehicles > most:
        raise ExperimentError(
            f"traffic.mean_in_coverage = {vehicles:g}: the streets in coverage hold {most} vehicles, bumper to bumper: "
            "ask for fewer."
        )


def _check_total(area: _Area, density: float) -> None:
    total = float((density * area.metres_per_edge).sum())
    if total > MOST_VEHICLES:
        raise ExperimentError(
            f"This traffic has {total:.0f} vehicles on the whole grid of roads.blocks = {area.roads.blocks}, of which "
            f"{MOST_VEHICLES} are allowed: ask for fewer, or make the grid no larger than the coverage needs."
        )


def _metres_in_coverage(area: _Area) -> float:
    metres = area.routes.expected_metres(area.radius_m)
    if metres == 0:
        raise ExperimentError(
            f"No street is within radio.coverage_radius_m = {area.radius_m:g} m: "
            "enlarge it, or make roads.blocks even, so that streets cross at the gNB."
        )
    return metres


@lru_cache(maxsize=16)  # a run asks twice: once to look ahead, once for itself
def _mean_speed_mps(area: _Area, density: float) -> float:
    """Mean speed in coverage in a run of its own.

    density: vehicles on an edge, per metre that a vehicle is expected to drive there in all.
    For everybody who leaves somebody comes in, so that the density stays. The run has its own seed, so that the
    arrival rate is a property of the experiment.
    """
    routes, params, streams = area.routes, typical_driver(area.mobility), Streams(0)
    dt_s = min(1.0, max(area.mobility.step_s, PILOT_STEP_M / params.desired_speed_mps))
    streets = TrafficEngine(area.experiment, routes, dt_s, streams)
    rng = streams.generator("traffic")
    count = rng.poisson(density * area.metres_per_edge)
    streets.populate(*start_positions(count, routes.grid, params, rng))
    vehicles = streets.fleet.size
    streets.settle(rng)
    speeds = []
    for _ in range(min(PILOT_STEPS, PILOT_STEPS * PILOT_VEHICLES // max(vehicles, 1))):
        streets.drive()
        streets.refill(vehicles, rng)
        speeds.append(streets.speeds_within(area.radius_m))
    seen_mps = np.concatenate(speeds)
    mean_mps = seen_mps.mean() if seen_mps.size else params.desired_speed_mps
    return max(float(mean_mps), CRAWL * params.desired_speed_mps)


def start_positions(count: Ints, grid: StreetGrid, params: IdmParams, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Edges and positions, in order, of vehicles at random between junctions, `count` of them on each edge.

    Uniform given that they keep the distance of equilibrium at the desired speed or, where there are too many
    for that, an equal share of the edge. Those who do not fit even at the minimum gap are left out.
    """
    first_m = grid.junction_m + params.length_m  # the tail is out of the junction
    usable_m = grid.stop_line_m - first_m
    closest_m = params.length_m + params.min_gap_m
    easy_m = closest_m + params.headway_s * params.desired_speed_mps
    count = np.minimum(count, 1 + int(usable_m / closest_m))
    space_m = np.maximum(np.minimum(usable_m / np.maximum(count, 1), easy_m), closest_m)
    edge = np.repeat(np.arange(grid.edges), count)
    rank = np.arange(edge.size) - np.repeat(count.cumsum() - count, count)
    uniform = rng.random(edge.size)
    uniform = uniform[np.lexsort((uniform, edge))]
    free_m = np.maximum(usable_m - (count - 1) * space_m, 0.0)
    return edge, first_m + uniform * free_m[edge] + rank * space_m[edge]
