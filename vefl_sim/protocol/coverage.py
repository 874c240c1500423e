"""The coverage process: moves all vehicles, and lets CVs enter and leave coverage at the exact instant."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np
from simpy import Event

from vefl_sim.core.errors import RunFailed
from vefl_sim.core.state import State, Stateful, from_state, optional_state, state_of
from vefl_sim.mobility.coverage import Crossing, crossings, in_coverage
from vefl_sim.mobility.scene import Mobility, Scene
from vefl_sim.protocol.instants import Instant, NanosecondEnvironment, Precedence
from vefl_sim.protocol.trace import CoverageEntered, CoverageLeft, Trace, TripEnded
from vefl_sim.protocol.vehicle import ConnectedVehicle
from vefl_sim.radio.channel import Channel
from vefl_sim.schemes.sla import Agreement


@dataclass
class CoverageProcess:
    """Advances the mobility model, one step ahead of the clock, and keeps the set of CVs in coverage."""

    env: NanosecondEnvironment
    mobility: Mobility
    channel: Channel
    radius_m: float
    trace: Trace
    vehicle: Callable[[int, Callable[[], float]], ConnectedVehicle]  # makes a CV, from its number and distance
    in_coverage: dict[int, ConnectedVehicle] = field(default_factory=dict)
    outside: dict[int, ConnectedVehicle] = field(default_factory=dict)  # those that have left, and may come back

    def __post_init__(self) -> None:
        self._before = self._after = self.mobility.scene()
        self._agreements: dict[int, Agreement] = {}  # of CVs that came before the checkpoint that was restored

    def moves(self) -> Generator[Event, Any, None]:
        """Advance step by step; between two steps a CV enters or leaves where its straight line crosses the circle."""
        if self._before is self._after:  # the start of the run: no vehicle has moved yet
            yield Instant(self.env, self._before.time_ns, Precedence.COVERAGE)
            for cv in in_coverage(self._before, self.radius_m).tolist():
                self._enter(cv)
            self._advance()
        while True:
            for crossing in self._remaining_crossings():
                yield Instant(self.env, crossing.time_ns, Precedence.COVERAGE)
                (self._enter if crossing.entered else self._leave)(crossing.cv)
            yield Instant(self.env, self._after.time_ns, Precedence.COVERAGE)
            self._advance()

    def _remaining_crossings(self) -> list[Crossing]:
        """Crossings of the current step that lie in the future: after a checkpoint the step may be partly over."""
        in_step = crossings(self._before, self._after, self.radius_m)
        return [crossing for crossing in in_step if crossing.time_ns > self.env.now]

    def _advance(self) -> None:
        self._before = self._after
        self.channel.move(self._before)
        self.trace.tell(self._before)
        self._after = self.mobility.advance()
        for cv in self.outside.keys() - self._after.vehicle.tolist():
            del self.outside[cv]  # its trip has ended
        self._approach(self._after)

    def _approach(self, scene: Scene) -> None:
        """Tell the next scene to a channel that follows CVs between scenes: it has the optional method `approach`."""
        if approach := getattr(self.channel, "approach", None):
            approach(scene)

    def state(self) -> State:
        """The scenes of the current step, the CVs in coverage, and the state of mobility and channel (None if none)."""
        known = self._agreements | {cv: one.agreement for cv, one in (self.outside | self.in_coverage).items()}
        here = {*self._after.vehicle.tolist(), *self.in_coverage}  # others have ended their trips
        return {
            "before": state_of(self._before),
            "after": state_of(self._after),
            "in_coverage": list(self.in_coverage),
            "agreements": {cv: state_of(known[cv]) for cv in sorted(here & known.keys())},
            "mobility": optional_state(self.mobility),
            "channel": optional_state(self.channel),
        }

    def restore(self, state: State) -> None:
        """Restore the current step and the CVs in coverage, which are to be started, from a checkpoint."""
        self._before, self._after = from_state(Scene, state["before"]), from_state(Scene, state["after"])
        self._agreements = {cv: Agreement(**terms) for cv, terms in state["agreements"].items()}
        self.in_coverage.update((cv, self._new_vehicle(cv)) for cv in state["in_coverage"])
        mobility, channel = state["mobility"], state["channel"]
        if mobility is None or channel is None:
            self._replay(with_channel=channel is None)
        else:
            cast(Stateful, self.mobility).restore(mobility)
        if channel is not None:
            cast(Stateful, self.channel).restore(channel)

    def _replay(self, with_channel: bool) -> None:
        """Repeat all steps since the start: for traffic that is kept or recorded, and parts that save no state."""
        scene = self.mobility.scene()
        while scene.time_ns < self._after.time_ns:
            if with_channel:
                self.channel.move(scene)
            scene = self.mobility.advance()
            if with_channel:
                self._approach(scene)
        if not scene.same_as(self._after):
            raise RunFailed("mobility.kind gave other positions when repeated: use --fresh to start the run again.")

    def position_m(self, cv: int) -> tuple[float, float]:
        """Position of a CV now, in metres from the gNB, on the straight line between two scenes."""
        rows = [(_row(scene, cv), scene) for scene in (self._before, self._after)]
        positions = [(scene.x_m[row], scene.y_m[row]) for row, scene in rows if row is not None]
        (x0, y0), (x1, y1) = positions[0], positions[-1]
        span_ns = self._after.time_ns - self._before.time_ns
        fraction = (self.env.now - self._before.time_ns) / span_ns if span_ns else 0.0
        return float(x0 + fraction * (x1 - x0)), float(y0 + fraction * (y1 - y0))

    def distance_m(self, cv: int) -> float:
        """Distance of a CV from the gNB now."""
        return float(np.hypot(*self.position_m(cv)))

    def _enter(self, cv: int) -> None:
        self.trace.note(CoverageEntered(cv, self.distance_m(cv)))
        if vehicle := self.outside.pop(cv, None):
            self.in_coverage[cv] = vehicle
            vehicle.enter()
        else:
            self.in_coverage[cv] = self._new_vehicle(cv)
            self.in_coverage[cv].start()

    def _leave(self, cv: int) -> None:
        has_ended, vehicle = _row(self._after, cv) is None, self.in_coverage.pop(cv)
        self.trace.note((TripEnded if has_ended else CoverageLeft)(cv, self.distance_m(cv)))
        vehicle.leave("trip_ended" if has_ended else "coverage_left")
        if not has_ended:
            self.outside[cv] = vehicle

    def _new_vehicle(self, cv: int) -> ConnectedVehicle:
        vehicle = self.vehicle(cv, partial(self.distance_m, cv))
        vehicle.agreement = self._agreements.get(cv, vehicle.agreement)
        return vehicle


def _row(scene: Scene, cv: int) -> int | None:
    """Row of a CV in the arrays of a scene; None if the scene does not contain it."""
    row = int(np.searchsorted(scene.vehicle, cv))
    return row if row < len(scene.vehicle) and scene.vehicle[row] == cv else None
