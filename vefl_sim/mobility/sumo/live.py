"""Scenes from a running SUMO: after every step, all vehicles near the gNB, by a subscription."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from vefl_sim.core.clock import to_ns, to_s
from vefl_sim.core.errors import ExperimentError, RunFailed, VeflError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.recorded.recording import Motion, Recording, VehicleNumbers
from vefl_sim.mobility.scene import Played, Scene
from vefl_sim.mobility.sources import is_sumo_configuration
from vefl_sim.mobility.sumo.net import Position
from vefl_sim.mobility.sumo.programs import running

AROUND_M = 100.0  # beyond coverage; farther than shadowing is correlated, so a returning vehicle may count as new
_GNB = "vefl_sim gNB"
_SKIP_S = 10.0  # simulated per call before the start of the run, so that Ctrl-C is handled in between
_SIDESTEP_M = 4.0  # because lane changes are instantaneous
_NEVER_CVS = frozenset(
    ("bicycle", "pedestrian", "wheelchair", "scooter", "tram", "rail", "rail_urban", "rail_electric", "rail_fast",
     "subway", "cable_car", "ship", "container", "aircraft", "drone")
)  # fmt: skip
"""SUMO's vehicle classes that are never CVs."""


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


class LiveTraffic(Played):
    """Scenes from a running SUMO, which libsumo and traci control by the same calls."""

    def __init__(self, sumo: Any, setup: SumoSetup, on_time: Callable[[float], None]) -> None:
        """`on_time` is called with SUMO's time while SUMO advances to the start of the run."""
        import traci.constants as codes

        e, self._sumo, self._setup, self._codes = setup.experiment, sumo, setup, codes
        self._register = VehicleNumbers(Streams(e.run.seed), e.traffic.cv_share)
        recording = Recording(f'mobility.file = "{e.mobility.file}"', self._register)
        variables, sidestep_m = [codes.VAR_POSITION, codes.VAR_SPEED], math.inf
        if is_sumo_configuration(e):  # there may be bicycles, and jumps, which the sojourn bound excludes
            variables, sidestep_m = [*variables, codes.VAR_VEHICLECLASS], _SIDESTEP_M
            for name in sumo.vehicletype.getIDList():  # whose other parameters stay
                most_mps = min(sumo.vehicletype.getMaxSpeed(name), e.mobility.max_speed_mps)
                sumo.vehicletype.setMaxSpeed(name, most_mps)
        self._motion = Motion(recording, e.mobility.max_speed_mps, sidestep_m)
        sumo.poi.add(_GNB, *setup.gnb_m, (255, 0, 0, 255))
        sumo.poi.subscribeContext(_GNB, codes.CMD_GET_VEHICLE_VARIABLE, setup.reach_m, variables)
        sumo.simulation.subscribe([codes.VAR_DEPARTED_VEHICLES_IDS])
        super().__init__(to_ns(e.mobility.step_s), self._drive_on(on_time))

    def _drive_on(self, on_time: Callable[[float], None]) -> Iterator[Scene]:
        """Advance to the start of the run, and yield all scenes from there on; at SUMO's own begin nobody is there."""
        time_s, near = self._sumo.simulation.getTime(), dict[str, Any]()
        start_s = time_s if self._setup.start_s is None else self._setup.start_s
        if start_s < time_s:
            raise ExperimentError(f"mobility.start_s = {start_s:g}: SUMO begins at {time_s:g} s: start there or later.")
        while time_s < start_s:
            time_s = min(time_s + _SKIP_S, start_s)
            near = self._drive(time_s)
            on_time(time_s)
        for time_ns in count(0, self.step_ns):
            if time_ns > 0:
                near = self._drive(start_s + to_s(time_ns))
            yield self._as_scene(near, time_ns)

    def _drive(self, time_s: float) -> dict[str, Any]:
        """Let SUMO advance to this time, and number the vehicles that depart; return those near the gNB."""
        with _explained(f"at {time_s:.1f} s of its own time"):
            self._sumo.simulationStep(time_s)
            departed = self._sumo.simulation.getSubscriptionResults()[self._codes.VAR_DEPARTED_VEHICLES_IDS]
            self._register.numbers(departed)
            near: dict[str, Any] = self._sumo.poi.getContextSubscriptionResults(_GNB)
        return near

    def _as_scene(self, near: dict[str, Any], time_ns: int) -> Scene:
        """The scene of all vehicles within reach; SUMO may report others, too."""
        found, codes, vehicle = [*near.values()], self._codes, self._register.numbers([*near])
        places_m = np.array([values[codes.VAR_POSITION][:2] for values in found]).reshape(-1, 2)
        x_m, y_m = (places_m - self._setup.gnb_m).T
        speed_mps = np.array([values[codes.VAR_SPEED] for values in found])
        kinds = [values.get(codes.VAR_VEHICLECLASS) for values in found]
        connected = self._register.connected(vehicle) & np.array([kind not in _NEVER_CVS for kind in kinds], np.bool_)
        rows = np.argsort(vehicle)
        rows = rows[(x_m * x_m + y_m * y_m <= self._setup.reach_m**2)[rows]]
        scene = Scene(time_ns, vehicle, x_m, y_m, speed_mps, connected).rows(rows)
        self._motion.check(scene)
        return scene


@contextmanager
def live(setup: SumoSetup, on_time: Callable[[float], None] = lambda time_s: None) -> Iterator[LiveTraffic]:
    """Start SUMO and yield its traffic; SUMO is stopped when the block ends. `on_time`: see `LiveTraffic`."""
    label = f'mobility.file = "{setup.experiment.mobility.file}"'
    with running(setup.experiment.sumo.client, setup.all_arguments(), label) as sumo:
        with _explained("at its start"):
            traffic = LiveTraffic(sumo, setup, on_time)
        yield traffic


@contextmanager
def _explained(when: str) -> Iterator[None]:
    """Turn an error of libsumo, of traci, or of its socket into RunFailed."""
    try:
        yield
    except VeflError:
        raise
    except Exception as error:
        raise RunFailed(f"SUMO stopped {when}: {str(error).strip() or type(error).__name__}") from error
