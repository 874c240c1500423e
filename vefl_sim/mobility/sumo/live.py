"""Scenes from a running SUMO."""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from vefl_sim.core.clock import to_ns, to_s
from vefl_sim.core.errors import ExperimentError, RunFailed, VeflError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.recorded.frame import first
from vefl_sim.mobility.recorded.register import VehicleNumbers
from vefl_sim.mobility.scene import Scene
from vefl_sim.mobility.sources import is_sumo_configuration
from vefl_sim.mobility.sumo.net import Position
from vefl_sim.mobility.sumo.process import CannotStart, running
from vefl_sim.mobility.sumo.watching import Observations, PollingWatch, SubscriptionWatch, Watch

AROUND_M = 100.0  # beyond coverage; farther than shadowing is correlated, so a returning vehicle may count as new
_SKIP_S = 10.0  # simulated per call before the start of the run, so that Ctrl-C is handled in between
_SPEED_TOLERANCE_MPS = 0.01
_NOT_ON_THE_ROAD = frozenset(
    ("bicycle", "pedestrian", "wheelchair", "scooter", "tram", "rail", "rail_urban", "rail_electric", "rail_fast",
     "subway", "cable_car", "ship", "container", "aircraft", "drone")
)  # fmt: skip
"""SUMO's vehicle classes that are never CVs."""
_SIDESTEP_M = 4.0  # because lane changes are instantaneous


@dataclass(frozen=True)
class SumoSetup:
    """The arguments and settings with which SUMO is started."""

    experiment: Experiment
    arguments: tuple[str, ...]
    gnb_m: Position
    start_s: float | None  # start of the run in SUMO's time; None: SUMO's own begin

    @property
    def reach_m(self) -> float:
        """Distance from the gNB beyond which vehicles are left out; none of them can be in coverage one step later."""
        mobility = self.experiment.mobility
        return self.experiment.radio.coverage_radius_m + AROUND_M + mobility.max_speed_mps * mobility.step_s

    def all_arguments(self) -> tuple[str, ...]:
        """`arguments` plus those for every input: the step and seed of the run, and no teleporting."""
        return (
            *self.arguments,
            "--step-length", f"{self.experiment.mobility.step_s:g}",
            "--seed", str(Streams(self.experiment.run.seed).seed_for("sumo") >> 1),  # SUMO accepts 31 bits
            "--random", "false",
            "--time-to-teleport", "-1",
            "--collision.action", "warn",
        )  # fmt: skip


class LiveTraffic:
    """Scenes from a running SUMO, which may be some steps ahead, because reading many steps at once is faster."""

    def __init__(self, sumo: Any, setup: SumoSetup, on_time: Callable[[float], None] | None = None) -> None:
        """`on_time` is called with SUMO's time while SUMO advances to the start of the run."""
        self._sumo, self._setup = sumo, setup
        self.step_ns = to_ns(setup.experiment.mobility.step_s)
        self._register = VehicleNumbers(Streams(setup.experiment.run.seed), setup.experiment.traffic.cv_share)
        self._may_jump = is_sumo_configuration(setup.experiment)
        self._watch = self._make_watch()
        if self._may_jump:
            self._limit_types()
        self._begin_s = sumo.simulation.getTime()
        self._start_s = self._begin_s if setup.start_s is None else setup.start_s
        self._driven_ns = 0
        self._ahead: deque[Scene] = deque()
        self._failure: VeflError | None = None  # raised after the scenes in `_ahead`
        self._scene = self._skip(on_time)

    def scene(self) -> Scene:
        """The current scene."""
        return self._scene

    def advance(self) -> Scene:
        """The scene one step later."""
        if not self._ahead and not self._failure:
            self._read_ahead()
        before, self._scene = self._scene, self._next()
        if self._may_jump:
            self._check_jumps(before, self._scene)
        return self._scene

    def _make_watch(self) -> Watch:
        setup, circle = self._setup, (self._setup.gnb_m, self._setup.reach_m)
        if setup.experiment.sumo.client == "traci":
            return SubscriptionWatch(self._sumo, self._register, circle, self._add)
        most_mps = math.inf if self._may_jump else setup.experiment.mobility.max_speed_mps
        return PollingWatch(self._sumo, self._register, circle, self._add, most_mps)

    def _add(self, names: Sequence[str]) -> None:
        """Number departing vehicles; a configuration may contain bicycles or trains, which are never CVs."""
        for name in names:
            self._register.number(name, not self._may_jump or self._is_on_the_road(name))

    def _is_on_the_road(self, name: str) -> bool:
        try:
            return self._sumo.vehicle.getVehicleClass(name) not in _NOT_ON_THE_ROAD
        except Exception:  # it has arrived within the same call, so it is in no scene
            return True

    def _limit_types(self) -> None:
        """Limit the speeds of the vehicle types of a configuration to u_max; their other parameters stay."""
        types, most_mps = self._sumo.vehicletype, self._setup.experiment.mobility.max_speed_mps
        for name in types.getIDList():
            types.setMaxSpeed(name, min(types.getMaxSpeed(name), most_mps))

    def _skip(self, on_time: Callable[[float], None] | None) -> Scene:
        """Advance to the start of the run and return the first scene."""
        if self._start_s < self._begin_s:
            raise ExperimentError(
                f"mobility.start_s = {self._start_s:g}: SUMO begins at {self._begin_s:g} s: start there or later."
            )
        time_s, observations = self._begin_s, Observations()
        if time_s == self._start_s:
            observations.vehicles.append(self._register.numbers(()))  # no vehicle has departed yet
        while time_s < self._start_s and not self._failure:
            time_s, observations = min(time_s + _SKIP_S, self._start_s), Observations()
            self._drive([time_s], observations)
            if on_time:
                on_time(time_s)
        self._queue_scenes(observations, [0])
        return self._next()

    def _drive(self, times_s: list[float], observations: Observations) -> None:
        """Advance to these times; an exception is stored, to be raised after the scenes before it."""
        try:
            self._watch.drive(times_s, observations)
        except Exception as error:  # from libsumo, from traci, or from its socket
            sumo_s = times_s[len(observations.vehicles)]
            since = f"{abs(sumo_s - self._start_s):.1f} s {'after' if sumo_s > self._start_s else 'before'}"
            when = f"{since} the start of the run ({sumo_s:.1f} s of its own time)"
            self._failure = RunFailed(f"SUMO stopped {when}: {str(error).strip() or type(error).__name__}")
            self._failure.__cause__ = error

    def _read_ahead(self) -> None:
        """Advance SUMO by some steps and queue their scenes."""
        times_ns = [self._driven_ns + step * self.step_ns for step in range(1, self._watch.steps + 1)]
        observations = Observations()
        self._drive([self._start_s + to_s(time_ns) for time_ns in times_ns], observations)
        self._driven_ns = times_ns[-1]
        self._queue_scenes(observations, times_ns)

    def _next(self) -> Scene:
        if not self._ahead and self._failure:
            raise self._failure
        return self._ahead.popleft()

    def _queue_scenes(self, observations: Observations, times_ns: list[int]) -> None:
        """Queue the scenes of all vehicles within reach, up to the first scene in which a vehicle is too fast."""
        step, vehicle, x_m, y_m, speed_mps = observations.table()
        x_m, y_m = x_m - self._setup.gnb_m[0], y_m - self._setup.gnb_m[1]
        reachable = np.flatnonzero(x_m * x_m + y_m * y_m <= self._setup.reach_m**2)
        step, speed_mps = step[reachable], speed_mps[reachable]
        vehicle, x_m, y_m = vehicle[reachable], x_m[reachable], y_m[reachable]
        all_steps = Scene(0, vehicle, x_m, y_m, speed_mps, self._register.connected(vehicle))
        times_ns = times_ns[: len(observations.vehicles)]
        row = first(speed_mps > self._setup.experiment.mobility.max_speed_mps + _SPEED_TOLERANCE_MPS)
        if row is not None:
            times_ns = times_ns[: step[row]]
            self._failure = self._too_fast(all_steps.rows(np.flatnonzero(step == step[row])))
        ends = np.searchsorted(step, np.arange(len(times_ns) + 1)).tolist()
        for time_ns, start, end in zip(times_ns, ends, ends[1:], strict=False):
            self._ahead.append(_part(all_steps, time_ns, slice(start, end)))

    def _check_jumps(self, before: Scene, now: Scene) -> None:
        """Refuse jumps, which a configuration may contain and which the sojourn bound excludes."""
        mobility = self._setup.experiment.mobility
        _, old, new = np.intersect1d(before.vehicle, now.vehicle, assume_unique=True, return_indices=True)
        moved_m = np.hypot(now.x_m[new] - before.x_m[old], now.y_m[new] - before.y_m[old])
        row = first(moved_m > mobility.max_speed_mps * mobility.step_s + _SIDESTEP_M)
        if row is not None:
            name = self._register.name(int(now.vehicle[new[row]]))
            raise ExperimentError(
                f"Vehicle {name} of {mobility.file} moves {moved_m[row]:.1f} m in {mobility.step_s:g} s, "
                f"{to_s(now.time_ns):g} s after the start, farther than mobility.max_speed_mps = "
                f"{mobility.max_speed_mps:g} allows: remove jumps and teleports from the configuration."
            )

    def _too_fast(self, scene: Scene) -> ExperimentError:
        mobility, row = self._setup.experiment.mobility, int(scene.speed_mps.argmax())
        name = self._register.name(int(scene.vehicle[row]))
        return ExperimentError(
            f"Vehicle {name} of {mobility.file} drives {scene.speed_mps[row]:.2f} m/s: raise "
            f"mobility.max_speed_mps = {mobility.max_speed_mps:g}, because the sojourn bound relies on it."
        )


def _part(scene: Scene, time_ns: int, rows: slice) -> Scene:
    """Some rows of a scene, at another time."""
    position = scene.x_m[rows], scene.y_m[rows]
    return Scene(time_ns, scene.vehicle[rows], *position, scene.speed_mps[rows], scene.connected[rows])


@contextmanager
def live(setup: SumoSetup, on_time: Callable[[float], None] | None = None) -> Iterator[LiveTraffic]:
    """Start SUMO and yield its traffic; SUMO is stopped when the block ends."""
    with ExitStack() as stack:
        try:
            sumo = stack.enter_context(running(setup.experiment.sumo.client, setup.all_arguments()))
        except CannotStart as error:
            raise ExperimentError(f'mobility.file = "{setup.experiment.mobility.file}": SUMO says: {error}') from None
        try:
            traffic = LiveTraffic(sumo, setup, on_time)
        except VeflError:
            raise
        except Exception as error:  # from libsumo, from traci, or from its socket
            raise RunFailed(f"SUMO stopped at its start: {str(error).strip() or type(error).__name__}") from error
        yield traffic
