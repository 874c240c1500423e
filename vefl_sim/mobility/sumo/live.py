"""Traffic as SUMO drives it, scene by scene."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from vefl_sim.clock import to_ns, to_s
from vefl_sim.errors import ExperimentError, RunFailed, VeflError
from vefl_sim.experiment import Experiment
from vefl_sim.mobility.frame import first
from vefl_sim.mobility.register import Register
from vefl_sim.mobility.scene import Scene
from vefl_sim.mobility.sumo.net import Point
from vefl_sim.mobility.sumo.process import CannotStart, running
from vefl_sim.rng import Streams

AROUND_M = 100.0  # beyond coverage: farther than shadowing remembers, so that whoever comes back may be new
_SKIP_S = 10.0  # of the time before the run in one go, so that Ctrl-C is heard
_SPEED_TOLERANCE_MPS = 0.01
_SIDESTEP_M = 4.0  # a lane is changed at once
_GNB = "vefl_sim gNB"


@dataclass(frozen=True)
class Case:
    """What SUMO is started with."""

    experiment: Experiment
    arguments: tuple[str, ...]
    gnb_m: Point
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
    """Scenes from a SUMO that runs. What it tells is subscribed to, so that a step is one exchange."""

    def __init__(self, sumo: Any, case: Case) -> None:
        import traci.constants as ask

        self._sumo, self._case, self._ask = sumo, case, ask
        self.step_ns = to_ns(case.experiment.mobility.step_s)
        self._register = Register(Streams(case.experiment.run.seed), case.experiment.traffic.cv_share)
        x_m, y_m = case.gnb_m
        sumo.poi.add(_GNB, x_m, y_m, (255, 0, 0, 255))
        sumo.poi.subscribeContext(_GNB, ask.CMD_GET_VEHICLE_VARIABLE, case.reach_m, [ask.VAR_POSITION, ask.VAR_SPEED])
        sumo.simulation.subscribe([ask.VAR_DEPARTED_VEHICLES_IDS])
        if case.experiment.is_sumo_configuration:
            self._limit_types()
        self._begin_s = sumo.simulation.getTime()
        self._start_s = self._begin_s if case.start_s is None else case.start_s
        self._time_ns = 0
        self._scene = self._skip()

    def scene(self) -> Scene:
        """The current scene."""
        return self._scene

    def advance(self) -> Scene:
        """The scene a step later."""
        self._time_ns += self.step_ns
        before, self._scene = self._scene, self._at(self._start_s + to_s(self._time_ns))
        if self._case.experiment.is_sumo_configuration:
            self._check_jumps(before, self._scene)
        return self._scene

    def _limit_types(self) -> None:
        """u_max for the vehicles of a configuration; the rest of them is its own."""
        types, most_mps = self._sumo.vehicletype, self._case.experiment.mobility.max_speed_mps
        for name in types.getIDList():
            types.setMaxSpeed(name, min(types.getMaxSpeed(name), most_mps))

    def _skip(self) -> Scene:
        """Drive to where the run begins."""
        if self._start_s < self._begin_s:
            raise ExperimentError(
                f"mobility.start_s = {self._start_s:g}: SUMO begins at {self._begin_s:g} s: start there or later."
            )
        time_s = self._begin_s
        while time_s < self._start_s:
            time_s = min(time_s + _SKIP_S, self._start_s)
            scene = self._at(time_s)
        return scene if self._start_s > self._begin_s else self._seen({})

    def _at(self, sumo_s: float) -> Scene:
        """Let SUMO drive up to this time. Vehicles are numbered in the order in which they depart."""
        try:
            self._sumo.simulationStep(sumo_s)
            departed = self._sumo.simulation.getSubscriptionResults()[self._ask.VAR_DEPARTED_VEHICLES_IDS]
            near = self._sumo.poi.getContextSubscriptionResults(_GNB)
        except Exception as error:  # of libsumo, of traci, or of its socket
            since = f"{abs(sumo_s - self._start_s):.1f} s {'after' if sumo_s > self._start_s else 'before'}"
            when = f"{since} the start of the run ({sumo_s:.1f} s of its own time)"
            raise RunFailed(f"SUMO stopped {when}: {str(error).strip() or type(error).__name__}") from error
        if departed:
            self._register.numbers(departed)
        return self._seen(near)

    def _seen(self, near: dict[str, Any]) -> Scene:
        """One array for everything: a step has to be cheap beside what SUMO takes for it."""
        number, (x_m, y_m) = self._register.number, self._case.gnb_m
        place, speed = self._ask.VAR_POSITION, self._ask.VAR_SPEED
        rows = sorted((number(name), *told[place][:2], told[speed]) for name, told in near.items())
        table = np.array(rows, np.float64).reshape(-1, 4)
        vehicle, speed_mps = table[:, 0].astype(np.int64), table[:, 3].copy()
        if rows and speed_mps.max() > self._case.experiment.mobility.max_speed_mps + _SPEED_TOLERANCE_MPS:
            raise ExperimentError(self._too_fast(near))
        connected = self._register.connected(vehicle)
        return Scene(self._time_ns, vehicle, table[:, 1] - x_m, table[:, 2] - y_m, speed_mps, connected)

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

    def _too_fast(self, near: dict[str, Any]) -> str:
        mobility, speed = self._case.experiment.mobility, self._ask.VAR_SPEED
        name = max(near, key=lambda name: near[name][speed])
        return (
            f"Vehicle {name} of {mobility.file} drives {near[name][speed]:.2f} m/s: raise "
            f"mobility.max_speed_mps = {mobility.max_speed_mps:g}, because the sojourn bound relies on it."
        )


@contextmanager
def live(case: Case) -> Iterator[LiveTraffic]:
    """SUMO at work on a case, for the time of a block."""
    with ExitStack() as stack:
        try:
            sumo = stack.enter_context(running(case.experiment.sumo.client, case.all_arguments()))
        except CannotStart as error:
            raise ExperimentError(f'mobility.file = "{case.experiment.mobility.file}": SUMO says: {error}') from None
        try:
            traffic = LiveTraffic(sumo, case)
        except VeflError:
            raise
        except Exception as error:  # of libsumo, of traci, or of its socket
            raise RunFailed(f"SUMO stopped at its start: {str(error).strip() or type(error).__name__}") from error
        yield traffic
