"""Who is near the gNB, step by step: asked one by one within the process, by subscription from outside of it.

A subscription saves exchanges with another process. Within ours there are none to save, and what it costs (a search
around the gNB, a map of maps, a dict of dicts) is several times as much as two plain questions per vehicle.
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
_SPARE_M = 10.0  # lanes are changed at once

Around = tuple[Position, float]
"""A place and a distance from it."""
Enter = Callable[[Sequence[str]], None]
"""Hears who departs, in this order."""


class Notes:
    """What was seen in some steps, one after the other. Arrays are made of it later, of many steps at once."""

    def __init__(self) -> None:
        self.vehicles: list[Ints] = []  # of each step that is complete, in ascending order
        self.places_m, self.speeds_mps = array("d"), array("d")  # x, y, x, y, …; and one for each of them

    def table(self) -> tuple[Ints, Ints, Floats, Floats, Floats]:
        """Step, vehicle, x, y and speed; one row for each who was seen in a step."""
        step = np.repeat(np.arange(len(self.vehicles)), [numbers.size for numbers in self.vehicles])
        rows, places_m = step.size, np.array(self.places_m[: 2 * step.size])
        numbers = np.concatenate(self.vehicles) if self.vehicles else step
        return step, numbers, places_m[0::2], places_m[1::2], np.array(self.speeds_mps[:rows])


class Watch(Protocol):
    """Lets SUMO drive, and sees who is where."""

    steps: int  # that are best driven in one go

    def drive(self, times_s: Sequence[float], notes: Notes) -> None:
        """Drive to one time after the other, and note each time everybody near the gNB, and maybe others.

        What SUMO raises is raised.
        """
        ...


class Asking:
    """Two questions per vehicle, to libsumo. Who is too far to come near in this go is not asked before the next."""

    steps = 40

    def __init__(
        self, libsumo: Any, register: VehicleNumbers, around: Around, enter: Enter, max_speed_mps: float
    ) -> None:
        self._libsumo, self._register = libsumo._libsumo, register  # without the layer of Python, as slow as itself
        self._around, self._enter, self._max_speed_mps = around, enter, max_speed_mps
        self._now_s: float = libsumo.simulation.getTime()

    def drive(self, times_s: Sequence[float], notes: Notes) -> None:
        """A tight loop: per step SUMO takes a tenth of a millisecond, and whatever is done beside it shows."""
        sumo, number = self._libsumo, self._register.number
        step, place_m, speed_mps = sumo.simulation_step, sumo.vehicle_getPosition, sumo.vehicle_getSpeed
        departures, arrivals = sumo.simulation_getDepartedIDList, sumo.simulation_getArrivedIDList
        anywhere = self._max_speed_mps == math.inf  # whoever is far away may be here next
        names = sorted(self._can_come_near(times_s[-1] - self._now_s), key=number)
        numbers = self._register.numbers(names)
        for time_s in times_s:
            step(time_s)
            departed, arrived = departures(), arrivals()
            if departed or arrived or anywhere:
                self._enter(departed)
                there = sumo.vehicle_getIDList() if anywhere else (*names, *departed)
                names = sorted(set(there).difference(arrived), key=number)
                numbers = self._register.numbers(names)
            notes.places_m.extend(chain.from_iterable(map(place_m, names)))
            notes.speeds_mps.extend(map(speed_mps, names))
            notes.vehicles.append(numbers)
            self._now_s = time_s

    def _can_come_near(self, seconds: float) -> list[str]:
        sumo, ((x_m, y_m), reach_m) = self._libsumo, self._around
        away_m = reach_m + self._max_speed_mps * seconds + _SPARE_M
        places = ((name, sumo.vehicle_getPosition(name)) for name in sumo.vehicle_getIDList())
        return [name for name, (x, y) in places if (x - x_m) ** 2 + (y - y_m) ** 2 <= away_m**2]


class Subscribed:
    """Everything with the step itself, from traci, whose SUMO is a process of its own."""

    steps = 1

    def __init__(self, traci: Any, register: VehicleNumbers, around: Around, enter: Enter) -> None:
        import traci.constants as ask

        self._sumo, self._register, self._enter, self._ask = traci, register, enter, ask
        gnb_m, reach_m = around
        traci.poi.add(_GNB, *gnb_m, (255, 0, 0, 255))
        traci.poi.subscribeContext(_GNB, ask.CMD_GET_VEHICLE_VARIABLE, reach_m, [ask.VAR_POSITION, ask.VAR_SPEED])
        traci.simulation.subscribe([ask.VAR_DEPARTED_VEHICLES_IDS])

    def drive(self, times_s: Sequence[float], notes: Notes) -> None:
        """One exchange per step."""
        for time_s in times_s:
            self._sumo.simulationStep(time_s)
            self._enter(self._sumo.simulation.getSubscriptionResults()[self._ask.VAR_DEPARTED_VEHICLES_IDS])
            near = self._sumo.poi.getContextSubscriptionResults(_GNB)
            names = sorted(near, key=self._register.number)
            notes.places_m.extend(chain.from_iterable(near[name][self._ask.VAR_POSITION][:2] for name in names))
            notes.speeds_mps.extend(near[name][self._ask.VAR_SPEED] for name in names)
            notes.vehicles.append(self._register.numbers(names))
