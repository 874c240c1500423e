"""Traffic as SUMO drives it, scene by scene."""

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
from vefl_sim.mobility.sumo.net import Position
from vefl_sim.mobility.sumo.process import CannotStart, running
from vefl_sim.mobility.sumo.watching import Asking, Notes, Subscribed, Watch

AROUND_M = 100.0  # beyond coverage: farther than shadowing remembers, so that whoever comes back may be new
_SKIP_S = 10.0  # of the time before the run in one go, so that Ctrl-C is heard
_SPEED_TOLERANCE_MPS = 0.01
_NOT_ON_THE_ROAD = frozenset(
    ("bicycle", "pedestrian", "wheelchair", "scooter", "tram", "rail", "rail_urban", "rail_electric", "rail_fast",
     "subway", "cable_car", "ship", "container", "aircraft", "drone")
)  # fmt: skip
"""SUMO's classes of vehicles that are no CVs."""
_SIDESTEP_M = 4.0  # a lane is changed at once


@dataclass(frozen=True)
class SumoSetup:
    """What SUMO is started with."""

    experiment: Experiment
    arguments: tuple[str, ...]
    gnb_m: Position
    start_s: float | None  # in SUMO's time; its own beginning if not given

    @property
    def reach_m(self) -> float:
        """Who is farther from the gNB is left out: nobody can be there and in coverage a step later."""
        mobility = self.experiment.mobility
        return self.experiment.radio.coverage_radius_m + AROUND_M + mobility.max_speed_mps * mobility.step_s

    def all_arguments(self) -> tuple[str, ...]:
        """With what holds for every input: our step and our seed, and nobody jumps."""
        return (
            *self.arguments,
            "--step-length", f"{self.experiment.mobility.step_s:g}",
            "--seed", str(Streams(self.experiment.run.seed).seed_for("sumo") >> 1),  # SUMO takes 31 bits
            "--random", "false",
            "--time-to-teleport", "-1",
            "--collision.action", "warn",
        )  # fmt: skip


class LiveTraffic:
    """Scenes from a SUMO that runs. It may be some steps ahead, because a look at many at once takes less time."""

    def __init__(self, sumo: Any, case: SumoSetup, hear: Callable[[float], None] | None = None) -> None:
        """`hear` is told SUMO's time while it drives to the start of the run."""
        self._sumo, self._case = sumo, case
        self.step_ns = to_ns(case.experiment.mobility.step_s)
        self._register = VehicleNumbers(Streams(case.experiment.run.seed), case.experiment.traffic.cv_share)
        self._may_jump = case.experiment.is_sumo_configuration
        self._watch = self._watching()
        if self._may_jump:
            self._limit_types()
        self._begin_s = sumo.simulation.getTime()
        self._start_s = self._begin_s if case.start_s is None else case.start_s
        self._driven_ns = 0
        self._ahead: deque[Scene] = deque()
        self._failure: VeflError | None = None  # after the scenes ahead
        self._scene = self._skip(hear)

    def scene(self) -> Scene:
        """The current scene."""
        return self._scene

    def advance(self) -> Scene:
        """The scene a step later."""
        if not self._ahead and not self._failure:
            self._go_on()
        before, self._scene = self._scene, self._next()
        if self._may_jump:
            self._check_jumps(before, self._scene)
        return self._scene

    def _watching(self) -> Watch:
        case, around = self._case, (self._case.gnb_m, self._case.reach_m)
        if case.experiment.sumo.client == "traci":
            return Subscribed(self._sumo, self._register, around, self._enter)
        most_mps = math.inf if self._may_jump else case.experiment.mobility.max_speed_mps
        return Asking(self._sumo, self._register, around, self._enter, most_mps)

    def _enter(self, names: Sequence[str]) -> None:
        """Number them. In a configuration there may be others than cars, which are no CVs."""
        for name in names:
            self._register.number(name, not self._may_jump or self._is_on_the_road(name))

    def _is_on_the_road(self, name: str) -> bool:
        try:
            return self._sumo.vehicle.getVehicleClass(name) not in _NOT_ON_THE_ROAD
        except Exception:  # it has arrived in the same go; nobody will see it
            return True

    def _limit_types(self) -> None:
        """u_max for the vehicles of a configuration; the rest of them is its own."""
        types, most_mps = self._sumo.vehicletype, self._case.experiment.mobility.max_speed_mps
        for name in types.getIDList():
            types.setMaxSpeed(name, min(types.getMaxSpeed(name), most_mps))

    def _skip(self, hear: Callable[[float], None] | None) -> Scene:
        """Drive to where the run begins."""
        if self._start_s < self._begin_s:
            raise ExperimentError(
                f"mobility.start_s = {self._start_s:g}: SUMO begins at {self._begin_s:g} s: start there or later."
            )
        time_s, notes = self._begin_s, Notes()
        if time_s == self._start_s:
            notes.vehicles.append(self._register.numbers(()))  # nobody has departed yet
        while time_s < self._start_s and not self._failure:
            time_s, notes = min(time_s + _SKIP_S, self._start_s), Notes()
            self._drive([time_s], notes)
            if hear:
                hear(time_s)
        self._take(notes, [0])
        return self._next()

    def _drive(self, times_s: list[float], notes: Notes) -> None:
        """What goes wrong is told when the scenes before it have been seen."""
        try:
            self._watch.drive(times_s, notes)
        except Exception as error:  # of libsumo, of traci, or of its socket
            sumo_s = times_s[len(notes.vehicles)]
            since = f"{abs(sumo_s - self._start_s):.1f} s {'after' if sumo_s > self._start_s else 'before'}"
            when = f"{since} the start of the run ({sumo_s:.1f} s of its own time)"
            self._failure = RunFailed(f"SUMO stopped {when}: {str(error).strip() or type(error).__name__}")
            self._failure.__cause__ = error

    def _go_on(self) -> None:
        times_ns = [self._driven_ns + step * self.step_ns for step in range(1, self._watch.steps + 1)]
        notes = Notes()
        self._drive([self._start_s + to_s(time_ns) for time_ns in times_ns], notes)
        self._driven_ns = times_ns[-1]
        self._take(notes, times_ns)

    def _next(self) -> Scene:
        if not self._ahead and self._failure:
            raise self._failure
        return self._ahead.popleft()

    def _take(self, notes: Notes, times_ns: list[int]) -> None:
        """Scenes of everybody within reach, up to the first in which somebody is too fast."""
        step, vehicle, x_m, y_m, speed_mps = notes.table()
        x_m, y_m = x_m - self._case.gnb_m[0], y_m - self._case.gnb_m[1]
        near = np.flatnonzero(x_m * x_m + y_m * y_m <= self._case.reach_m**2)
        step, speed_mps = step[near], speed_mps[near]
        whole = Scene(0, vehicle[near], x_m[near], y_m[near], speed_mps, self._register.connected(vehicle[near]))
        times_ns = times_ns[: len(notes.vehicles)]
        row = first(speed_mps > self._case.experiment.mobility.max_speed_mps + _SPEED_TOLERANCE_MPS)
        if row is not None:
            times_ns = times_ns[: step[row]]
            self._failure = self._too_fast(whole.rows(np.flatnonzero(step == step[row])))
        ends = np.searchsorted(step, np.arange(len(times_ns) + 1)).tolist()
        for time_ns, start, end in zip(times_ns, ends, ends[1:], strict=False):
            self._ahead.append(_part(whole, time_ns, slice(start, end)))

    def _check_jumps(self, before: Scene, now: Scene) -> None:
        """A configuration may let vehicles jump, which the sojourn bound does not know."""
        mobility = self._case.experiment.mobility
        _, old, new = np.intersect1d(before.vehicle, now.vehicle, assume_unique=True, return_indices=True)
        moved_m = np.hypot(now.x_m[new] - before.x_m[old], now.y_m[new] - before.y_m[old])
        row = first(moved_m > mobility.max_speed_mps * mobility.step_s + _SIDESTEP_M)
        if row is not None:
            name = self._register.name(int(now.vehicle[new[row]]))
            raise ExperimentError(
                f"Vehicle {name} of {mobility.file} moves {moved_m[row]:.1f} m in {mobility.step_s:g} s, "
                f"{to_s(now.time_ns):g} s after the start, farther than mobility.max_speed_mps = "
                f"{mobility.max_speed_mps:g} allows: drive without jumps and teleports."
            )

    def _too_fast(self, scene: Scene) -> ExperimentError:
        mobility, row = self._case.experiment.mobility, int(scene.speed_mps.argmax())
        name = self._register.name(int(scene.vehicle[row]))
        return ExperimentError(
            f"Vehicle {name} of {mobility.file} drives {scene.speed_mps[row]:.2f} m/s: raise "
            f"mobility.max_speed_mps = {mobility.max_speed_mps:g}, because the sojourn bound relies on it."
        )


def _part(scene: Scene, time_ns: int, rows: slice) -> Scene:
    place = scene.x_m[rows], scene.y_m[rows]
    return Scene(time_ns, scene.vehicle[rows], *place, scene.speed_mps[rows], scene.connected[rows])


@contextmanager
def live(case: SumoSetup, hear: Callable[[float], None] | None = None) -> Iterator[LiveTraffic]:
    """SUMO at work on a case, for the time of a block."""
    with ExitStack() as stack:
        try:
            sumo = stack.enter_context(running(case.experiment.sumo.client, case.all_arguments()))
        except CannotStart as error:
            raise ExperimentError(f'mobility.file = "{case.experiment.mobility.file}": SUMO says: {error}') from None
        try:
            traffic = LiveTraffic(sumo, case, hear)
        except VeflError:
            raise
        except Exception as error:  # of libsumo, of traci, or of its socket
            raise RunFailed(f"SUMO stopped at its start: {str(error).strip() or type(error).__name__}") from error
        yield traffic
