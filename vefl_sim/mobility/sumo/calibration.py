"""How many vehicles have to depart so that as many are in coverage as were asked for."""

import math
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment, RunTable
from vefl_sim.experiment.radio_tables import RadioTable
from vefl_sim.mobility.recorded.trajectory import Tell
from vefl_sim.mobility.scene import Scene
from vefl_sim.mobility.sumo.demand import SumoRoutes, write_demand
from vefl_sim.mobility.sumo.live import SumoSetup, live
from vefl_sim.mobility.sumo.net import Position

LEAST_SETTLED_S = 100.0
LEAST_PILOT_S = 600.0
MOST_PILOTS, NEAR = 6, 0.05
BLOCKED_S = 10
PILOT_STEP_S = 0.5  # with SUMO's default of 1 s unsignalled junctions pass too many: a third less in coverage
_TELL_EVERY = 100  # steps
_GROWTH = (1.0, 4.0)  # exponents that are taken for real
_GUESS = 0.5  # of the free speed, with lights and others in the way
_DENSE = 0.15  # of bumper to bumper: with more, the first pilot might drive for ever in its own jam
_JAM = 0.1  # of the free speed
_CLOSE = 1.5  # rates, of which one jams, between which nothing better is looked for


@dataclass(frozen=True)
class Pilot:
    """A run to see what a rate does."""

    rate_per_s: float
    in_coverage: float
    step_s: float
    jammed: bool = False  # hardly anybody moves: more departures do not bring more into coverage


@dataclass(frozen=True)
class Calibration:
    """The rate of departures, and how long it takes until as many arrive."""

    rate_per_s: float
    settled_s: float
    in_coverage: float | None  # in the pilot run that came nearest; not known if the rate was given
    pilots: tuple[Pilot, ...]
    confirming: Pilot | None = None  # at the run's own step, if that is smaller; the rate is corrected by it

    @property
    def jams(self) -> bool:
        """Whether vehicles stood rather than drove in the pilot that came nearest."""
        nearest = [pilot for pilot in self.pilots if pilot.in_coverage == self.in_coverage]
        return any(pilot.jammed for pilot in (self.confirming, *nearest) if pilot)


def calibrate(experiment: Experiment, routes: SumoRoutes, gnb_m: Position, tell: Tell | None = None) -> Calibration:
    """The rate that was asked for, or the one that keeps up `traffic.mean_in_coverage`.

    By Little's law the number in coverage is the rate times the mean time there, which grows with the traffic, in a jam
    without bound. So pilot runs try: first a guess from the routes alone, then what follows from those before, until
    one is near. They have a seed of their own: the rate belongs to the experiment and not to one run of it. Their steps
    are long, and what that hides a last one shows at the step of the run. `tell` hears how far each of them is.
    """
    case = _relevant(experiment), routes, gnb_m
    if case not in _found:  # the runs of a comparison have the same
        _found[case] = _calibrate(*case, tell)
    return _found[case]


_found: dict[tuple[Experiment, SumoRoutes, Position], Calibration] = {}


def _relevant(experiment: Experiment) -> Experiment:
    """What the rate depends on, and nothing else."""
    e = experiment
    radio = RadioTable(coverage_radius_m=e.radio.coverage_radius_m)
    return Experiment(run=RunTable(name="pilot"), mobility=e.mobility, sumo=e.sumo, traffic=e.traffic, radio=radio)


def _calibrate(experiment: Experiment, routes: SumoRoutes, gnb_m: Position, tell: Tell | None) -> Calibration:
    settled_s = _settled_s(experiment, routes)
    if rate_per_s := experiment.traffic.arrivals_per_s:
        return Calibration(rate_per_s, settled_s, None, ())
    wanted, metres = experiment.mean_in_coverage, routes.metres_within(gnb_m, experiment.radio.coverage_radius_m)
    most = _room(experiment, routes, gnb_m)
    if not metres:
        raise ExperimentError(
            f"None of the {len(routes.edges)} routes through {routes.net.path} comes within "
            f"radio.coverage_radius_m = {experiment.radio.coverage_radius_m:g} of the gNB: move it (mobility.origin_m)."
        )
    pilot = partial(_pilot, experiment, routes, gnb_m, settled_s=settled_s, tell=tell)
    rate_per_s, pilots = min(wanted, _DENSE * most) * _GUESS * _free_mps(experiment, routes) / metres, []
    for _ in range(MOST_PILOTS):
        pilots.append(pilot(rate_per_s, max(experiment.mobility.step_s, PILOT_STEP_S)))
        if _is_near(pilots[-1], wanted) or _is_hopeless(pilots, wanted):
            break
        rate_per_s = _next_rate(pilots, wanted)
    best = min(pilots, key=lambda pilot: abs(pilot.in_coverage - wanted))
    _check_jam(best, pilots, wanted)
    if experiment.mobility.step_s >= PILOT_STEP_S:
        return Calibration(best.rate_per_s, settled_s, best.in_coverage, tuple(pilots))
    confirming = pilot(best.rate_per_s, experiment.mobility.step_s)
    rate_per_s = _corrected(confirming, _growth(best, pilots), wanted)
    return Calibration(rate_per_s, settled_s, best.in_coverage, tuple(pilots), confirming)


def _is_near(pilot: Pilot, wanted: float) -> bool:
    return abs(pilot.in_coverage / wanted - 1) <= NEAR


def _is_hopeless(pilots: list[Pilot], wanted: float) -> bool:
    """Traffic that flows is too little, and what is hardly more stands."""
    flowing = max((p.rate_per_s for p in pilots if not p.jammed and p.in_coverage < wanted), default=0.0)
    return any(p.jammed and p.in_coverage < wanted and p.rate_per_s <= _CLOSE * flowing for p in pilots)


def _check_jam(best: Pilot, pilots: list[Pilot], wanted: float) -> None:
    """Half of what was asked for is something else."""
    if best.in_coverage < wanted / 2 and any(p.jammed for p in pilots):
        flowing = max((p.in_coverage for p in pilots if not p.jammed), default=0.0)
        raise ExperimentError(
            f"traffic.mean_in_coverage = {wanted:g}: the streets jam before. With {flowing:.0f} vehicles in coverage "
            f"the traffic still flowed, with {max(p.in_coverage for p in pilots):.0f} it stood: ask for fewer."
        )


def _corrected(confirming: Pilot, growth: float, wanted: float) -> float:
    """The rate that should give what is wanted, if numbers go with this power of it."""
    if _is_near(confirming, wanted) or not confirming.in_coverage:
        return confirming.rate_per_s
    return confirming.rate_per_s * min(max(math.pow(wanted / confirming.in_coverage, 1 / growth), 0.5), 2.0)


def _growth(best: Pilot, pilots: list[Pilot]) -> float:
    """Exponent between the best pilot and the one next to it: the denser the traffic, the longer everybody stays."""
    others = [p for p in pilots if p.in_coverage > 0 and p.rate_per_s != best.rate_per_s]
    if not others or not best.in_coverage:
        return 1.0
    other = min(others, key=lambda p: abs(math.log(p.rate_per_s / best.rate_per_s)))
    growth = math.log(other.in_coverage / best.in_coverage) / math.log(other.rate_per_s / best.rate_per_s)
    return min(max(growth, _GROWTH[0]), _GROWTH[1])


def _next_rate(pilots: list[Pilot], wanted: float) -> float:
    """In proportion to the last; between two that enclose what is wanted, along a power law."""
    below = max((p for p in pilots if p.in_coverage < wanted and not p.jammed), key=_rate, default=None)
    above = min((p for p in pilots if p.in_coverage >= wanted or p.jammed), key=_rate, default=None)
    if below and above and above.in_coverage < wanted:
        return math.sqrt(below.rate_per_s * above.rate_per_s)
    if pilots[-1].jammed and not below:
        return pilots[-1].rate_per_s / 3
    if below and above and below.in_coverage > 0 and below.rate_per_s < above.rate_per_s:
        part = math.log(wanted / below.in_coverage) / math.log(above.in_coverage / below.in_coverage)
        part = min(max(part, 0.2), 0.8)  # in a jam there is no law, but a part of the way gets us there
        return below.rate_per_s * math.pow(above.rate_per_s / below.rate_per_s, part)
    return pilots[-1].rate_per_s * min(max(wanted / max(pilots[-1].in_coverage, 1e-9), 1 / 3), 3.0)


def _rate(pilot: Pilot) -> float:
    return pilot.rate_per_s


def _free_mps(experiment: Experiment, routes: SumoRoutes) -> float:
    """Mean speed of a vehicle that is alone."""
    most_mps = experiment.mobility.max_speed_mps
    if not experiment.sumo.lane_limits:
        return most_mps
    free_s = routes.metres(np.array([s.length_m / min(s.limit_mps, most_mps) for s in routes.net.streets]))
    return routes.length_m / free_s


def _settled_s(experiment: Experiment, routes: SumoRoutes) -> float:
    """Three free journeys from the start of the traffic hardly anybody of the first is left."""
    return float(max(LEAST_SETTLED_S, round(3 * routes.length_m / _free_mps(experiment, routes))))


def _room(experiment: Experiment, routes: SumoRoutes, gnb_m: Position) -> int:
    """Bumper to bumper is the most that the streets in coverage can hold."""
    lanes = np.array([street.lanes for street in routes.net.streets])
    metres = routes.net.metres_within(gnb_m, experiment.radio.coverage_radius_m) @ lanes
    most = int(metres / (experiment.mobility.length_m + experiment.mobility.min_gap_m))
    if experiment.mean_in_coverage > most:
        raise ExperimentError(
            f"traffic.mean_in_coverage = {experiment.mean_in_coverage:g}: the streets in coverage hold {most} "
            "vehicles, bumper to bumper: ask for fewer."
        )
    return most


def _pilot(
    experiment: Experiment,
    routes: SumoRoutes,
    gnb_m: Position,
    rate_per_s: float,
    step_s: float,
    *,
    settled_s: float,
    tell: Tell | None = None,
) -> Pilot:
    """Mean number of vehicles in coverage at this rate, once the traffic has settled."""
    mobility, radius_m = experiment.mobility, experiment.radio.coverage_radius_m
    watched_s = max(LEAST_PILOT_S, 2 * settled_s)
    run = experiment.run.model_copy(update={"seed": 0})
    own = experiment.model_copy(update={"run": run, "mobility": mobility.model_copy(update={"step_s": step_s})})
    with tempfile.TemporaryDirectory() as folder:
        demand = Path(folder) / "pilot.rou.xml.gz"
        write_demand(demand, routes, own, rate_per_s, settled_s + watched_s)
        case = SumoSetup(own, arguments(routes.net.path, demand), gnb_m, settled_s)
        hear = partial(tell, of_s=settled_s + watched_s) if tell else None
        with live(case, hear) as traffic:
            seen, speeds_mps, free_mps = list[int](), list[float](), _free_mps(own, routes)
            for step in range(int(watched_s / step_s)):
                inside = _inside(traffic.advance(), radius_m)
                seen.append(inside.size)
                speeds_mps.append(float(inside.sum()))
                if step % _TELL_EVERY:
                    continue
                if hear:
                    hear(settled_s + step * step_s)
                if step * step_s >= LEAST_SETTLED_S and _stands(seen, speeds_mps, free_mps):
                    break  # it would go on like this, and for long: SUMO is slow with so many
    return Pilot(rate_per_s, float(np.mean(seen)), step_s, _stands(seen, speeds_mps, free_mps))


def _stands(seen: list[int], speeds_mps: list[float], free_mps: float) -> bool:
    """Whether it is a jam: vehicles in coverage and the sum of their speeds, at every step."""
    return sum(speeds_mps) < _JAM * free_mps * sum(seen)


def _inside(scene: Scene, radius_m: float) -> Floats:
    """Speeds of those in coverage."""
    return scene.speed_mps[scene.x_m**2 + scene.y_m**2 <= radius_m**2]


def arguments(net: Path, demand: Path) -> tuple[str, ...]:
    """SUMO's, for demand of our making; it moves vehicles as our own traffic does.

    Since nobody is teleported out of a jam, vehicles that wait for each other on a junction would do so for ever, and
    all others behind them: after a while they pass.
    """
    return (
        "--net-file", str(net), "--route-files", str(demand), "--begin", "0", "--step-method.ballistic",
        "--ignore-junction-blocker", str(BLOCKED_S),
    )  # fmt: skip
