"""How much traffic there is: the arrival rate, and how many vehicles that puts on each edge."""

from dataclasses import dataclass

import numpy as np

from vefl_sim.experiment import Experiment
from vefl_sim.mobility.driving import Driving
from vefl_sim.mobility.idm import IdmParams
from vefl_sim.mobility.population import places
from vefl_sim.mobility.roads import FloatArray, IntArray, StreetGrid
from vefl_sim.mobility.streets import Streets
from vefl_sim.mobility.wandering import Wandering
from vefl_sim.rng import Streams

PILOT_STEPS = 400
PILOT_STEP_M = 2.0  # in one step a free vehicle gets about this far, so that slow traffic is not stepped finely


@dataclass(frozen=True)
class Demand:
    """Arrivals at the border, and the state that they keep up."""

    arrivals_per_s: float
    vehicles_per_edge: FloatArray
    """Mean number of vehicles on each edge at any time."""

    def draw(self, rng: np.random.Generator) -> IntArray:
        """Numbers of vehicles on each edge at one instant: independent and Poisson, as arrivals are."""
        return rng.poisson(self.vehicles_per_edge)


def demand(experiment: Experiment, routes: Wandering, params: IdmParams) -> Demand:
    """The arrival rate that was asked for, or the one that keeps up `mean_in_coverage`.

    By Little's law the mean number in coverage is (arrival rate) × (expected distance driven there) / (mean speed).
    The distance is exact (`Wandering`). The mean speed is below the desired speed because vehicles wait for each
    other; a short pilot run at the wanted density measures it. Near the capacity of the junctions a longer run would
    find it lower still. The pilot has its own seed, so that the rate is a property of the experiment, not of the run.
    """
    grid, rate_per_s = routes.grid, experiment.traffic.arrivals_per_s
    metres_per_edge = routes.expected_visits() * grid.block_m
    if rate_per_s is None:
        metres = routes.expected_metres(experiment.radio.coverage_radius_m)
        per_edge = metres_per_edge * (experiment.mean_in_coverage / metres)
        speed_mps = pilot_speed(per_edge, experiment, routes, params)
        return Demand(experiment.mean_in_coverage * speed_mps / metres, per_edge)
    speed_mps = pilot_speed(metres_per_edge * rate_per_s / params.desired_speed_mps, experiment, routes, params)
    return Demand(rate_per_s, metres_per_edge * rate_per_s / speed_mps)


def pilot_speed(per_edge: FloatArray, experiment: Experiment, routes: Wandering, params: IdmParams) -> float:
    """Mean speed in coverage of a fleet of this density, after the first quarter of a short run without arrivals."""
    dt_s = min(1.0, max(experiment.mobility.step_s, PILOT_STEP_M / params.desired_speed_mps))
    streams = Streams(0)
    streets = Streets(Driving(routes.grid, params, dt_s), routes, streams)
    rng = streams.generator("traffic")
    edge, position_m = places(rng.poisson(per_edge), routes.grid, params, rng)
    streets.add(edge, position_m, np.full(edge.size, params.desired_speed_mps))
    streets.settle()
    speeds = []
    for step in range(PILOT_STEPS):
        streets.drive(step)
        if step >= PILOT_STEPS // 4:
            speeds.append(_speeds_within(streets, routes.grid, experiment.radio.coverage_radius_m))
    seen = np.concatenate(speeds)
    return float(seen.mean()) if seen.size else params.desired_speed_mps


def _speeds_within(streets: Streets, grid: StreetGrid, radius_m: float) -> FloatArray:
    x_m, y_m = grid.xy(streets.fleet.edge, streets.fleet.position_m)
    return streets.fleet.speed_mps[x_m**2 + y_m**2 <= radius_m**2]
