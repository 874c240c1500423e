"""Observes the vehicles near the gNB step by step: with libsumo by two calls per vehicle, with traci by subscription.

A subscription saves messages to another process. Libsumo runs in our process and has no messages to save; there a
subscription (a search around the gNB, a map of maps, a dict of dicts) costs several times as much as two plain calls
per vehicle.
"""

import math
from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Protocol

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.mobility.recorded.register import VehicleNumbers
from vefl_sim.mobility.sumo.net import Position

_GNB = "vefl_sim gNB"
_SPARE_M = 10.0  # because lane changes are instantaneous

Circle = tuple[Position, float]
"""Centre and radius in m of the circle to observe."""
OnDeparture = Callable[[Sequence[str]], None]
"""Callback that is given the names of departing vehicles, in the order of departure."""


class Observations:
    """The observations of several steps, appended one after the other and converted to arrays for all steps at once."""

    def __init__(self) -> None:
        self.vehicles: list[Ints] = []  # for each complete step, numbers in ascending order
        self.places_m, self.speeds_mps = array("d"), array("d")  # x, y, x, y, … of these vehicles; and their speeds

    def table(self) -> tuple[Ints, Ints, Floats, Floats, Floats]:
        """Step, vehicle, x, y and speed; one row per vehicle and step."""
        step = np.repeat(np.arange(len(self.vehicles)), [numbers.size for numbers in self.vehicles])
        rows, places_m = step.size, np.array(self.places_m[: 2 * step.size])
        numbers = np.concatenate(self.vehicles) if self.vehicles else step
        return step, numbers, places_m[0::2], places_m[1::2], np.array(self.speeds_mps[:rows])


class Watch(Protocol):
    """Advances SUMO and observes vehicles near the gNB."""

    steps: int  # number of steps that are best simulated in one call

    def drive(self, times_s: Sequence[float], observations: Observations) -> None:
        """Advance to each of these times and record all vehicles near the gNB, possibly with others.

        Exceptions of SUMO are passed on.
        """
        ...


class PollingWatch:
    """Makes two calls of libsumo per vehicle; skips vehicles that are too far away to come near during one `drive`."""

    steps = 40

    def __init__(
        self, libsumo: Any, register: VehicleNumbers, circle: Circle, on_departure: OnDeparture, max_speed_mps: float
    ) -> None:
        self._libsumo, self._register = libsumo._libsumo, register  # without the Python wrapper, as slow as SUMO itself
        self._circle, self._on_departure, self._max_speed_mps = circle, on_departure, max_speed_mps
        self._now_s: float = libsumo.simulation.getTime()

    def drive(self, times_s: Sequence[float], observations: Observations) -> None:
        """Advance and record in a tight loop: SUMO takes 0.1 ms per step, so every extra operation counts."""
        sumo, number = self._libsumo, self._register.number
        step, place_m, speed_mps = sumo.simulation_step, sumo.vehicle_getPosition, sumo.vehicle_getSpeed
        departures, arrivals = sumo.simulation_getDepartedIDList, sumo.simulation_getArrivedIDList
        anywhere = self._max_speed_mps == math.inf  # a vehicle may jump here from far away
        names = sorted(self._can_come_near(times_s[-1] - self._now_s), key=number)
        numbers = self._register.numbers(names)
        for time_s in times_s:
            step(time_s)
            departed, arrived = departures(), arrivals()
            if departed or arrived or anywhere:
                self._on_departure(departed)
                present = sumo.vehicle_getIDList() if anywhere else (*names, *departed)
                names = sorted(set(present).difference(arrived), key=number)
                numbers = self._register.numbers(names)
            observations.places_m.extend(chain.from_iterable(map(place_m, names)))
            observations.speeds_mps.extend(map(speed_mps, names))
            observations.vehicles.append(numbers)
            self._now_s = time_s

    def _can_come_near(self, seconds: float) -> list[str]:
        """Names of the vehicles that can be near the gNB within these seconds."""
        sumo, ((x_m, y_m), reach_m) = self._libsumo, self._circle
        away_m = reach_m + self._max_speed_mps * seconds + _SPARE_M
        places = ((name, sumo.vehicle_getPosition(name)) for name in sumo.vehicle_getIDList())
        return [name for name, (x, y) in places if (x - x_m) ** 2 + (y - y_m) ** 2 <= away_m**2]


class SubscriptionWatch:
    """Gets all observations with the step itself, from traci, where SUMO is a separate process."""

    steps = 1

    def __init__(self, traci: Any, register: VehicleNumbers, circle: Circle, on_departure: OnDeparture) -> None:
        import traci.constants as codes

        self._sumo, self._register, self._on_departure, self._codes = traci, register, on_departure, codes
        gnb_m, reach_m = circle
        traci.poi.add(_GNB, *gnb_m, (255, 0, 0, 255))
        variables = [codes.VAR_POSITION, codes.VAR_SPEED]
        traci.poi.subscribeContext(_GNB, codes.CMD_GET_VEHICLE_VARIABLE, reach_m, variables)
        traci.simulation.subscribe([codes.VAR_DEPARTED_VEHICLES_IDS])

    def drive(self, times_s: Sequence[float], observations: Observations) -> None:
        """Advance and record with one message per step."""
        for time_s in times_s:
            self._sumo.simulationStep(time_s)
            self._on_departure(self._sumo.simulation.getSubscriptionResults()[self._codes.VAR_DEPARTED_VEHICLES_IDS])
            near = self._sumo.poi.getContextSubscriptionResults(_GNB)
            names = sorted(near, key=self._register.number)
            observations.places_m.extend(
                chain.from_iterable(near[name][self._codes.VAR_POSITION][:2] for name in names)
            )
            observations.speeds_mps.extend(near[name][self._codes.VAR_SPEED] for name in names)
            observations.vehicles.append(self._register.numbers(names))
