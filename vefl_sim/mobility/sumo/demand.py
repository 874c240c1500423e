"""Generated demand for a network: routes by SUMO's randomTrips and duarouter, departures as a Poisson process.

If not given, the departure rate is the one at which `traffic.mean_in_coverage` vehicles are in coverage on average.
"""

import gzip
import math
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.progress import report
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment, RadioTable, RunTable
from vefl_sim.mobility.coverage import most_in_coverage
from vefl_sim.mobility.sumo.live import SumoSetup, live
from vefl_sim.mobility.sumo.net import Net, Position
from vefl_sim.mobility.sumo.programs import file_argument, run_program

ROUTES = 1000
_ANY_SPEED = 1000.0  # times the speed limit, so that only the maximum speed of the vehicle type limits

LEAST_SETTLED_S = 100.0
LEAST_PILOT_S = 600.0
MOST_PILOTS, NEAR = 6, 0.05
BLOCKED_S = 10
PILOT_STEP_S = 0.5  # with SUMO's default of 1 s, unsignalled junctions pass too many: a third less are in coverage
_REPORT_EVERY = 100  # steps
_GROWTH = (1.0, 4.0)  # smallest and largest plausible growth exponent
_GUESS = 0.5  # share of the free speed that the first pilot run assumes, because of lights and other vehicles
_DENSE = 0.15  # share of the bumper-to-bumper maximum; with more, the first pilot run might only produce a jam
_JAM = 0.1  # share of the free speed; slower traffic is a jam


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


def draw_routes(net: Net, fringe_factor: float) -> SumoRoutes:
    """Draw random routes through a network; they are the same for every run on it."""
    return SumoRoutes(net, _edges(net, fringe_factor))


@lru_cache(maxsize=16)  # the runs of a comparison share the same routes
def _edges(net: Net, fringe_factor: float) -> tuple[tuple[str, ...], ...]:
    with tempfile.TemporaryDirectory() as folder:
        trips, routes = Path(folder) / "trips.xml", Path(folder) / "routes.xml"
        run_program(
            "randomTrips.py",
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
        number, depart_s = 1, rng.exponential(1 / rate_per_s)
        while depart_s < until_s:
            file.write(
                f'<vehicle id="{number}" type="car" route="{rng.integers(len(routes.edges))}" '
                f'depart="{depart_s:.3f}" departLane="best" departSpeed="max"/>\n'
            )
            number, depart_s = number + 1, depart_s + rng.exponential(1 / rate_per_s)
        file.write("</routes>\n")


def _vehicle_type(experiment: Experiment) -> str:
    """The driver of the experiment as a vehicle type of SUMO."""
    driver, factor = experiment.mobility, 1.0 if experiment.sumo.lane_limits else _ANY_SPEED
    return (
        f'<vType id="car" vClass="passenger" carFollowModel="IDM" accel="{driver.max_accel_mps2!r}" '
        f'decel="{driver.comfort_decel_mps2!r}" tau="{driver.headway_s!r}" minGap="{driver.min_gap_m!r}" '
        f'length="{driver.length_m!r}" maxSpeed="{driver.max_speed_mps!r}" speedFactor="{factor:g}" speedDev="0"/>'
    )


@dataclass(frozen=True)
class Pilot:
    """A pilot run: a departure rate, and the mean number of vehicles in coverage that it gave."""

    rate_per_s: float
    in_coverage: float
    step_s: float
    jammed: bool = False  # hardly any vehicle moves: more departures do not bring more vehicles into coverage


@dataclass(frozen=True)
class Calibration:
    """The departure rate, and the time after which the traffic has settled."""

    rate_per_s: float
    settled_s: float
    in_coverage: float | None  # in the nearest pilot run; None if the user set the rate
    pilots: tuple[Pilot, ...]
    confirming: Pilot | None = None  # with the run's own step, if that is smaller; corrects the rate

    @property
    def jams(self) -> bool:
        """Whether the nearest pilot run, or the confirming one, was jammed."""
        nearest = [pilot for pilot in self.pilots if pilot.in_coverage == self.in_coverage]
        return any(pilot.jammed for pilot in (self.confirming, *nearest) if pilot)


def calibrate(experiment: Experiment, routes: SumoRoutes, gnb_m: Position) -> Calibration:
    """The rate `traffic.arrivals_per_s` or, if that is not set, the one that gives `traffic.mean_in_coverage`.

    By Little's law the number in coverage is the rate times the mean time there, which grows with the traffic, in a jam
    without bound. So the rate is searched with pilot runs: the first rate is estimated from the routes alone, the
    following ones from the previous pilot runs, until one is near. They have their own seed, because the rate belongs
    to the experiment and not to one run of it. They use long steps; a last one with the step of the run corrects the
    error that this causes.
    """
    e, run = experiment, RunTable(name="pilot", seed=0)
    radio = RadioTable(coverage_radius_m=e.radio.coverage_radius_m)
    relevant = Experiment(run=run, mobility=e.mobility, sumo=e.sumo, traffic=e.traffic, radio=radio)
    return _calibrate(relevant, routes, gnb_m)


@lru_cache(maxsize=16)  # the runs of a comparison share the same calibration
def _calibrate(experiment: Experiment, routes: SumoRoutes, gnb_m: Position) -> Calibration:
    settled_s = _settled_s(experiment, routes)
    if rate_per_s := experiment.traffic.arrivals_per_s:
        return Calibration(rate_per_s, settled_s, None, ())
    wanted, radius_m = experiment.mean_in_coverage, experiment.radio.coverage_radius_m
    lanes, covered_m = (
        np.array([street.lanes for street in routes.net.streets]),
        routes.net.metres_within(gnb_m, radius_m),
    )
    most, metres = most_in_coverage(experiment, covered_m @ lanes), routes.metres(covered_m)
    if not metres:
        raise ExperimentError(
            f"None of the {len(routes.edges)} routes through {routes.net.path} comes within "
            f"radio.coverage_radius_m = {radius_m:g} of the gNB: move it (mobility.origin_m)."
        )
    pilot = partial(_pilot, experiment, routes, gnb_m)
    rate_per_s, pilots = min(wanted, _DENSE * most) * _GUESS * _free_mps(experiment, routes) / metres, []
    for number in range(1, MOST_PILOTS + 1):
        pilots.append(pilot(rate_per_s, max(experiment.mobility.step_s, PILOT_STEP_S), number))
        if _is_near(pilots[-1], wanted):
            break
        rate_per_s = _next_rate(pilots, wanted)
    best = min(pilots, key=lambda pilot: abs(pilot.in_coverage - wanted))
    _check_jam(best, pilots, wanted)
    if experiment.mobility.step_s >= PILOT_STEP_S:
        return Calibration(best.rate_per_s, settled_s, best.in_coverage, tuple(pilots))
    confirming = pilot(best.rate_per_s, experiment.mobility.step_s, len(pilots) + 1)
    rate_per_s = _corrected_rate(confirming, best, pilots, wanted)
    return Calibration(rate_per_s, settled_s, best.in_coverage, tuple(pilots), confirming)


def _is_near(pilot: Pilot, wanted: float) -> bool:
    return abs(pilot.in_coverage / wanted - 1) <= NEAR


def _check_jam(best: Pilot, pilots: list[Pilot], wanted: float) -> None:
    """Refuse a calibration that jams and has less than half of the wanted vehicles in coverage."""
    if best.in_coverage < wanted / 2 and any(p.jammed for p in pilots):
        flowing = max((p.in_coverage for p in pilots if not p.jammed), default=0.0)
        raise ExperimentError(
            f"traffic.mean_in_coverage = {wanted:g}: the streets jam before; with {flowing:.0f} vehicles in coverage "
            f"the traffic still flowed, with {max(p.in_coverage for p in pilots):.0f} it stood still: lower it."
        )


def _corrected_rate(confirming: Pilot, best: Pilot, pilots: list[Pilot], wanted: float) -> float:
    """The rate that should give the wanted number, if numbers grow with the same power of the rate as between pilots.

    The denser the traffic, the longer vehicles stay. The power is that between the best pilot run and the one with the
    nearest rate.
    """
    if _is_near(confirming, wanted) or not confirming.in_coverage:
        return confirming.rate_per_s
    others, growth = [p for p in pilots if p.in_coverage > 0 and p.rate_per_s != best.rate_per_s], 1.0
    if others and best.in_coverage:
        other = min(others, key=lambda p: abs(math.log(p.rate_per_s / best.rate_per_s)))
        growth = math.log(other.in_coverage / best.in_coverage) / math.log(other.rate_per_s / best.rate_per_s)
        growth = min(max(growth, _GROWTH[0]), _GROWTH[1])
    return confirming.rate_per_s * min(max(math.pow(wanted / confirming.in_coverage, 1 / growth), 0.5), 2.0)


def _next_rate(pilots: list[Pilot], wanted: float) -> float:
    """The rate to try next: in proportion to the last one, or by a power law between two that enclose `wanted`."""
    by_rate = attrgetter("rate_per_s")
    below = max((p for p in pilots if p.in_coverage < wanted and not p.jammed), key=by_rate, default=None)
    above = min((p for p in pilots if p.in_coverage >= wanted or p.jammed), key=by_rate, default=None)
    if below and above and above.in_coverage < wanted:
        return math.sqrt(below.rate_per_s * above.rate_per_s)
    if pilots[-1].jammed and not below:
        return pilots[-1].rate_per_s / 3
    if below and above and below.in_coverage > 0 and below.rate_per_s < above.rate_per_s:
        part = math.log(wanted / below.in_coverage) / math.log(above.in_coverage / below.in_coverage)
        part = min(max(part, 0.2), 0.8)  # a jam follows no power law, but part of the way still converges
        return below.rate_per_s * math.pow(above.rate_per_s / below.rate_per_s, part)
    return pilots[-1].rate_per_s * min(max(wanted / max(pilots[-1].in_coverage, 1e-9), 1 / 3), 3.0)


def _free_mps(experiment: Experiment, routes: SumoRoutes) -> float:
    """Mean speed of a vehicle without other traffic."""
    most_mps = experiment.mobility.max_speed_mps
    if not experiment.sumo.lane_limits:
        return most_mps
    free_s = routes.metres(np.array([s.length_m / min(s.limit_mps, most_mps) for s in routes.net.streets]))
    return routes.length_m / free_s


def _settled_s(experiment: Experiment, routes: SumoRoutes) -> float:
    """Time for three journeys at free speed; after it hardly any of the first vehicles is left."""
    return float(max(LEAST_SETTLED_S, round(3 * routes.length_m / _free_mps(experiment, routes))))


def _pilot(
    experiment: Experiment, routes: SumoRoutes, gnb_m: Position, rate_per_s: float, step_s: float, number: int
) -> Pilot:
    """Run SUMO at this rate and measure the mean number of vehicles in coverage after the traffic has settled."""
    radius_m, settled_s = experiment.radio.coverage_radius_m, _settled_s(experiment, routes)
    watched_s = max(LEAST_PILOT_S, 2 * settled_s)
    experiment = experiment.model_copy(update={"mobility": experiment.mobility.model_copy(update={"step_s": step_s})})
    on_time = partial(report, f"pilot run {number} of SUMO to find the departure rate", of=settled_s + watched_s)
    counts, speeds_mps, free_mps = list[int](), list[float](), _free_mps(experiment, routes)
    with tempfile.TemporaryDirectory() as folder:
        demand = Path(folder) / "pilot.rou.xml.gz"
        write_demand(demand, routes, experiment, rate_per_s, settled_s + watched_s)
        with live(SumoSetup(experiment, arguments(routes.net.path, demand), gnb_m, settled_s), on_time) as traffic:
            for step in range(int(watched_s / step_s)):
                scene = traffic.advance()
                inside = scene.speed_mps[scene.x_m**2 + scene.y_m**2 <= radius_m**2]
                counts.append(inside.size)
                speeds_mps.append(float(inside.sum()))
                if step % _REPORT_EVERY == 0:
                    on_time(settled_s + step * step_s)
                    if step * step_s >= LEAST_SETTLED_S and _is_jammed(counts, speeds_mps, free_mps):
                        break  # the jam would last, and SUMO is slow with so many vehicles
    return Pilot(rate_per_s, float(np.mean(counts)), step_s, _is_jammed(counts, speeds_mps, free_mps))


def _is_jammed(counts: list[int], speeds_mps: list[float], free_mps: float) -> bool:
    """Whether the traffic is a jam, from the number of vehicles in coverage and the sum of their speeds per step."""
    return sum(speeds_mps) < _JAM * free_mps * sum(counts)


def arguments(net: Path, demand: Path) -> tuple[str, ...]:
    """SUMO's arguments for generated demand; SUMO integrates the motion as the built-in traffic does.

    Vehicles are not teleported out of a jam, so those that block each other on a junction would wait for ever, and all
    traffic behind them; after BLOCKED_S seconds they ignore each other.
    """
    return (
        "--net-file", file_argument(net), "--route-files", file_argument(demand), "--begin", "0",
        "--step-method.ballistic", "--ignore-junction-blocker", str(BLOCKED_S),
    )  # fmt: skip
