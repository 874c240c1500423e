"""Traffic on the street grid by the intelligent driver model (mobility.kind = "idm"): the default source of scenes.

The demand is the arrival rate, and the mean number of vehicles that it puts on each edge.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.clock import to_ns, to_s
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment, RadioTable, RunTable
from vefl_sim.mobility.coverage import most_in_coverage
from vefl_sim.mobility.grid.car_following import Rules
from vefl_sim.mobility.grid.engine import TrafficEngine
from vefl_sim.mobility.grid.fleet import typical_driver
from vefl_sim.mobility.grid.roads import StreetGrid
from vefl_sim.mobility.grid.routes import GridRoutes
from vefl_sim.mobility.idm import IdmParams
from vefl_sim.mobility.scene import Scene

PILOT_STEP_M = 2.0  # distance of a free vehicle in a step, so that slow traffic is simulated in longer steps
PILOT_STEPS = 2000
PILOT_VEHICLES = 1000  # with more vehicles, fewer steps give as many samples
MOST_VEHICLES = 20_000
CRAWL = 0.05  # share of the desired speed; lower bound of the mean speed, so that a jam gives a usable rate


class Arrivals:
    """Poisson arrivals at all entries together; each vehicle picks an entry uniformly at random."""

    def __init__(self, rate_per_s: float, entries: Ints, rng: np.random.Generator) -> None:
        self._rate_per_s, self._entries, self._rng = rate_per_s, entries, rng
        self._next_s = self._interval_s()
        self.waiting: list[int] = []
        """For each vehicle that waits outside, its entry; in order of arrival."""

    def queue_arrivals(self, now_s: float) -> None:
        """Add all vehicles that have arrived by now to the queue."""
        while self._next_s <= now_s:
            self.waiting.append(int(self._rng.choice(self._entries)))
            self._next_s += self._interval_s()

    def admit(self, open_entries: Iterable[int]) -> list[int]:
        """Remove the first vehicle at each of these entries from the queue; return the entries in order of arrival."""
        first = sorted(self.waiting.index(entry) for entry in open_entries)
        return [self.waiting.pop(place) for place in reversed(first)][::-1]

    def _interval_s(self) -> float:
        return float(self._rng.exponential(1 / self._rate_per_s))


class IdmTraffic:
    """Vehicles that arrive at the border, drive on the grid and leave again."""

    def __init__(self, experiment: Experiment, streams: Streams) -> None:
        grid = StreetGrid.of(experiment.roads, experiment.radio.coverage_radius_m)
        routes = GridRoutes(grid, experiment.traffic)
        self.step_ns = to_ns(experiment.mobility.step_s)
        self.streets = TrafficEngine(experiment, routes, to_s(self.step_ns), streams)
        _check_vehicle_fits(grid, self.streets.rules)
        wanted, rng = demand(experiment, routes), streams.generator("traffic")
        if experiment.traffic.warm_start:
            count, driver = rng.poisson(wanted.vehicles_per_edge), typical_driver(experiment.mobility)
            self.streets.populate(*start_positions(count, grid, driver, rng))
            self.streets.settle(rng)
        self._arrivals = Arrivals(wanted.arrivals_per_s, grid.entries, streams.generator("arrivals"))
        self._scene = self._make_scene()

    def scene(self) -> Scene:
        """The current scene."""
        return self._scene

    def advance(self) -> Scene:
        """Move all vehicles by one step, and admit those that have arrived in the meantime."""
        self.streets.drive()
        self._arrivals.queue_arrivals(to_s(self.streets.time_ns))
        if self._arrivals.waiting:
            entries = np.unique(self._arrivals.waiting)
            admitted = self._arrivals.admit(entries[self.streets.is_open(entries)].tolist())
            if admitted:
                self.streets.enter(np.array(admitted))
        self._scene = self._make_scene()
        return self._scene

    def _make_scene(self) -> Scene:
        fleet = self.streets.fleet
        x_m, y_m = self.streets.grid.xy(fleet.edge, fleet.position_m)
        return Scene(
            time_ns=self.streets.time_ns,
            vehicle=fleet.vehicle,
            x_m=x_m,
            y_m=y_m,
            speed_mps=fleet.speed_mps.copy(),  # a copy, because the array of the fleet changes in place
            connected=fleet.connected,
        )


def _check_vehicle_fits(grid: StreetGrid, rules: Rules) -> None:
    """Refuse vehicles that do not fit between two junctions, because they could never leave the first one."""
    place_m = rules.room_m - grid.junction_m
    if place_m > grid.block_m - 2 * grid.junction_m:
        raise ExperimentError(
            f"A vehicle of mobility.length_m with twice its gap (mobility.min_gap_m, mobility.driver_spread) takes "
            f"{place_m:g} m, which does not fit between two junctions of roads.block_m = {grid.block_m:g}: make the "
            "vehicle shorter or the blocks longer."
        )


class Demand(NamedTuple):
    """The arrival rate at the border, and the steady state that it maintains."""

    arrivals_per_s: float
    vehicles_per_edge: Floats
    """Mean number of vehicles on each edge; at one time it is Poisson, because arrivals are."""


def demand(experiment: Experiment, routes: GridRoutes) -> Demand:
    """The demand for `traffic.arrivals_per_s` or, if that is not set, the one that maintains `mean_in_coverage`.

    By Little's law, mean number in coverage = arrival rate × expected distance driven there / mean speed. The
    distance is exact (`GridRoutes`). The mean speed is below the desired speed because vehicles wait for each
    other and at traffic lights; a pilot run at the required density measures it.
    """
    e, radius_m, rate_per_s = experiment, experiment.radio.coverage_radius_m, experiment.traffic.arrivals_per_s
    radio = RadioTable(coverage_radius_m=radius_m)
    relevant = Experiment(
        run=RunTable(name="pilot"), roads=e.roads, mobility=e.mobility, traffic=e.traffic, radio=radio
    )
    if rate_per_s is None:
        if not (metres := routes.expected_metres(radius_m)):
            raise ExperimentError(
                f"No street is within radio.coverage_radius_m = {radius_m:g} m: enlarge it, or make roads.blocks even, "
                "so that streets cross at the gNB."
            )
        density = e.mean_in_coverage / metres
        most_in_coverage(e, routes.grid.metres_within(radius_m).sum())
        _check_total(e, density * routes.metres_per_edge)
        return Demand(density * _mean_speed_mps(relevant, density), density * routes.metres_per_edge)
    _check_inflow(e, routes.grid.entries.size, rate_per_s)
    if not e.traffic.warm_start:
        return Demand(rate_per_s, np.zeros(routes.grid.edges))  # not used without a warm start
    density = rate_per_s / e.mobility.max_speed_mps
    _check_total(e, density * routes.metres_per_edge)
    density = rate_per_s / _mean_speed_mps(relevant, density)
    return Demand(rate_per_s, density * routes.metres_per_edge)


def _check_inflow(experiment: Experiment, entries: int, rate_per_s: float) -> None:
    """Refuse a rate that the entries cannot take: vehicles keep the headway to each other."""
    most_per_s = entries / experiment.mobility.headway_s
    if rate_per_s > most_per_s:
        raise ExperimentError(
            f"traffic.arrivals_per_s = {rate_per_s:g}: with mobility.headway_s = {experiment.mobility.headway_s:g} no "
            f"more than {most_per_s:.3g} vehicles per second can come in over {entries} streets: lower it."
        )


def _check_total(experiment: Experiment, vehicles_per_edge: Floats) -> None:
    if (total := vehicles_per_edge.sum()) > MOST_VEHICLES:
        raise ExperimentError(
            f"This traffic has {total:.0f} vehicles on the whole grid of roads.blocks = {experiment.roads.blocks}, and "
            f"at most {MOST_VEHICLES} are allowed: ask for fewer, or make the grid no larger than the coverage needs."
        )


@lru_cache(maxsize=16)  # the runs of a comparison share the same traffic
def _mean_speed_mps(experiment: Experiment, density: float) -> float:
    """Mean speed in coverage, measured in a pilot run.

    density: vehicles on an edge, per metre of the total distance that a vehicle is expected to drive there.
    Each vehicle that leaves is replaced by a new one, so that the density stays. The pilot run has its own seed, so
    that the arrival rate is a property of the experiment and not of one run.
    """
    mobility, radius_m, streams = experiment.mobility, experiment.radio.coverage_radius_m, Streams(0)
    routes = GridRoutes(StreetGrid.of(experiment.roads, radius_m), experiment.traffic)
    dt_s = min(1.0, max(mobility.step_s, PILOT_STEP_M / mobility.max_speed_mps))
    streets, rng = TrafficEngine(experiment, routes, dt_s, streams), streams.generator("traffic")
    count = rng.poisson(density * routes.metres_per_edge)
    streets.populate(*start_positions(count, routes.grid, typical_driver(mobility), rng))
    vehicles = streets.fleet.size
    streets.settle(rng)
    speeds = []
    for _ in range(min(PILOT_STEPS, PILOT_STEPS * PILOT_VEHICLES // max(vehicles, 1))):
        streets.drive()
        streets.refill(vehicles, rng)
        x_m, y_m = routes.grid.xy(streets.fleet.edge, streets.fleet.position_m)
        speeds.append(streets.fleet.speed_mps[x_m**2 + y_m**2 <= radius_m**2])
    all_mps = np.concatenate(speeds)
    mean_mps = all_mps.mean() if all_mps.size else mobility.max_speed_mps
    return max(float(mean_mps), CRAWL * mobility.max_speed_mps)


def start_positions(count: Ints, grid: StreetGrid, params: IdmParams, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Random edges and positions, in order, of vehicles between junctions, `count` of them on each edge.

    Positions are uniform, given that vehicles keep their equilibrium distance at the desired speed or, where there
    are too many for that, an equal share of the edge. Vehicles that do not fit even at the minimum gap are left out.
    """
    first_m = grid.junction_m + params.length_m  # the rear is out of the junction
    usable_m = grid.stop_line_m - first_m
    closest_m = params.length_m + params.min_gap_m
    equilibrium_m = closest_m + params.headway_s * params.desired_speed_mps
    count = np.minimum(count, 1 + int(usable_m / closest_m))
    space_m = np.maximum(np.minimum(usable_m / np.maximum(count, 1), equilibrium_m), closest_m)
    edge = np.repeat(np.arange(grid.edges), count)
    rank = np.arange(edge.size) - np.repeat(count.cumsum() - count, count)
    uniform = rng.random(edge.size)
    uniform = uniform[np.lexsort((uniform, edge))]
    free_m = np.maximum(usable_m - (count - 1) * space_m, 0.0)
    return edge, first_m + uniform * free_m[edge] + rank * space_m[edge]
