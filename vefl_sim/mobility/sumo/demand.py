"""Generated demand for a network: routes by SUMO's randomTrips and duarouter, departures as a Poisson process."""

import gzip
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.sumo.net import Net, Position
from vefl_sim.mobility.sumo.programs import run_tool

ROUTES = 1000
_ANY_SPEED = 1000.0  # times the speed limit, so that only the maximum speed of the vehicle type limits


@dataclass(frozen=True)
class SumoRoutes:
    """Random routes through a network, the same for all runs; which vehicle takes which one is drawn for each run."""

    net: Net
    edges: tuple[tuple[str, ...], ...]

    def metres(self, per_street: Floats) -> float:
        """Mean over the routes of the sum of a value per street, usually metres."""
        values = {street.name: value for street, value in zip(self.net.streets, per_street.tolist(), strict=True)}
        total: float = sum(values.get(edge, 0.0) for route in self.edges for edge in route)
        return total / len(self.edges)

    def per_street(self) -> Floats:
        """Mean number of times that a vehicle uses each street."""
        used = Counter(edge for route in self.edges for edge in route)
        return np.array([used[street.name] for street in self.net.streets]) / len(self.edges)

    @property
    def length_m(self) -> float:
        """Mean length of a route."""
        return self.metres(np.array([street.length_m for street in self.net.streets]))

    def metres_within(self, centre_m: Position, radius_m: float) -> float:
        """Mean length of a route inside a circle."""
        return self.metres(self.net.metres_within(centre_m, radius_m))


def draw_routes(net: Net, fringe_factor: float) -> SumoRoutes:
    """Draw random routes through a network; they are the same for every run on it."""
    return SumoRoutes(net, _edges(net, fringe_factor))


@lru_cache(maxsize=16)  # the runs of a comparison share the same routes
def _edges(net: Net, fringe_factor: float) -> tuple[tuple[str, ...], ...]:
    with tempfile.TemporaryDirectory() as folder:
        trips, routes = Path(folder) / "trips.xml", Path(folder) / "routes.xml"
        run_tool(
            "randomTrips",
            ("-n", net.path, "-o", trips, "-r", routes, "-b", 0, "-e", ROUTES, "-p", 1, "--validate",
             "--seed", Streams(0).seed_for("sumo routes") >> 1, "--fringe-factor", fringe_factor,
             "--vehicle-class", "passenger"),
            f"No routes through {net.path} were found",
        )  # fmt: skip
        edges = tuple(tuple(route.attrib["edges"].split()) for route in ElementTree.parse(routes).iter("route"))
    if not edges:
        raise ExperimentError(f"No routes through {net.path} were found: choose a larger or another part of the map.")
    return edges


def write_demand(path: Path, routes: SumoRoutes, experiment: Experiment, rate_per_s: float, until_s: float) -> None:
    """Write SUMO's route file with all departures up to a time, drawn from the random streams of the run."""
    rng = Streams(experiment.run.seed).generator("sumo departures")
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as file:
        file.write(f"<routes>\n{_vehicle_type(experiment)}\n")
        for number, edges in enumerate(routes.edges):
            file.write(f'<route id="{number}" edges={quoteattr(" ".join(edges))}/>\n')
        for number, (depart_s, route) in enumerate(_departures(rng, rate_per_s, until_s, len(routes.edges)), 1):
            file.write(
                f'<vehicle id="{number}" type="car" route="{route}" depart="{depart_s:.3f}" departLane="best" '
                'departSpeed="max"/>\n'
            )
        file.write("</routes>\n")


def _departures(
    rng: np.random.Generator, rate_per_s: float, until_s: float, routes: int
) -> Iterator[tuple[float, int]]:
    """Yield departure times in s and random route numbers."""
    time_s = rng.exponential(1 / rate_per_s)
    while time_s < until_s:
        yield time_s, int(rng.integers(routes))
        time_s += rng.exponential(1 / rate_per_s)


def _vehicle_type(experiment: Experiment) -> str:
    """The driver of the experiment as a vehicle type of SUMO."""
    driver, factor = experiment.mobility, 1.0 if experiment.sumo.lane_limits else _ANY_SPEED
    return (
        f'<vType id="car" vClass="passenger" carFollowModel="IDM" accel="{driver.max_accel_mps2!r}" '
        f'decel="{driver.comfort_decel_mps2!r}" tau="{driver.headway_s!r}" minGap="{driver.min_gap_m!r}" '
        f'length="{driver.length_m!r}" maxSpeed="{driver.max_speed_mps!r}" speedFactor="{factor:g}" speedDev="0"/>'
    )
