"""Who is near the gNB, step by step: asked one by one within the process, by subscription from outside of it.

A subscription saves exchanges with another process. Within ours there are none to save, and what it costs (a search
around the gNB, a map of maps, a dict of dicts) is several times as much as two plain questions per vehicle.
"""

from array import array
from collections.abc import Callable
from itertools import chain
from typing import Any, Protocol

import numpy as np

from vefl_sim.mobility.arrays import FloatArray, IntArray
from vefl_sim.mobility.register import Register
from vefl_sim.mobility.sumo.net import Point

_GNB = "vefl_sim gNB"
_SPARE_M = 10.0  # lanes are changed at once


class Notes:
    """What was seen in some steps, one after the other. Arrays are made of it later, of many steps at once."""

    def __init__(self) -> None:
        self.vehicles: list[IntArray] = []  # of each step, in ascending order
        self.places_m, self.speeds_mps = array("d"), array("d")  # x, y, x, y, …; and one for each of them

    def table(self, steps: int) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
        """Step, vehicle, x, y and speed of the first steps, which are complete; one row for each who was seen."""
        vehicles = self.vehicles[:steps]
        step = np.repeat(np.arange(len(vehicles)), [numbers.size for numbers in vehicles])
        rows, places_m = step.size, np.array(self.places_m[: 2 * step.size])
        numbers = np.concatenate(vehicles) if vehicles else step
        return step, numbers, places_m[0::2], places_m[1::2], np.array(self.speeds_mps[:rows])


class Watch(Protocol):
    """Asks a SUMO that runs."""

    steps: int  # that are driven in one go

    def begin(self, seconds: float) -> None:
        """Steps follow that take so long in all."""
        ...

    def look(self, notes: Notes) -> None:
        """Note everybody near the gNB, and maybe others. Who departs gets a number, in the order of departures."""
        ...


class Asking:
    """Two questions per vehicle, to libsumo. Who is too far to come near in this go is not asked before the next."""

    steps = 20

    def __init__(self, libsumo: Any, register: Register, gnb_m: Point, reach_m: float, max_speed_mps: float) -> None:
        self._register, self._gnb_m = register, gnb_m
        self._reach_m, self._max_speed_mps = reach_m, max_speed_mps  # an infinite one: anybody may be anywhere next
        self._place_m, self._speed_mps = _plain(libsumo, "vehicle_getPosition"), _plain(libsumo, "vehicle_getSpeed")
        self._everybody = _plain(libsumo, "vehicle_getIDList")
        self._departed = _plain(libsumo, "simulation_getDepartedIDList")
        self._arrived = _plain(libsumo, "simulation_getArrivedIDList")
        self._names: list[str] = []
        self._numbers = register.numbers(())

    def begin(self, seconds: float) -> None:
        """Choose whom to ask."""
        x_m, y_m = self._gnb_m
        least = (self._reach_m + self._max_speed_mps * seconds + _SPARE_M) ** 2
        places = ((name, self._place_m(name)) for name in self._everybody())
        self._ask([name for name, (x, y) in places if (x - x_m) ** 2 + (y - y_m) ** 2 <= least])

    def look(self, notes: Notes) -> None:
        """Ask them, without those who have arrived, and with those who have departed."""
        departed, arrived = self._departed(), self._arrived()
        self._register.numbers(departed)
        if np.isinf(self._max_speed_mps):
            self._ask(list(self._everybody()))
        elif departed or arrived:
            gone = set(arrived)
            self._ask([name for name in (*self._names, *departed) if name not in gone])
        notes.vehicles.append(self._numbers)
        notes.places_m.extend(chain.from_iterable(map(self._place_m, self._names)))
        notes.speeds_mps.extend(map(self._speed_mps, self._names))

    def _ask(self, names: list[str]) -> None:
        self._names = sorted(names, key=self._register.number)
        self._numbers = self._register.numbers(self._names)


def _plain(libsumo: Any, name: str) -> Callable[..., Any]:
    """A function of libsumo without the layer of Python around it, which takes as long again."""
    function: Callable[..., Any] = getattr(libsumo._libsumo, name)
    return function


class Subscribed:
    """Everything with the step itself, from traci, whose SUMO is a process of its own."""

    steps = 1

    def __init__(self, traci: Any, register: Register, gnb_m: Point, reach_m: float) -> None:
        import traci.constants as ask

        self._sumo, self._register, self._ask = traci, register, ask
        traci.poi.add(_GNB, *gnb_m, (255, 0, 0, 255))
        traci.poi.subscribeContext(_GNB, ask.CMD_GET_VEHICLE_VARIABLE, reach_m, [ask.VAR_POSITION, ask.VAR_SPEED])
        traci.simulation.subscribe([ask.VAR_DEPARTED_VEHICLES_IDS])

    def begin(self, seconds: float) -> None:
        """Nothing is to be prepared."""

    def look(self, notes: Notes) -> None:
        """Take what came with the step."""
        self._register.numbers(self._sumo.simulation.getSubscriptionResults()[self._ask.VAR_DEPARTED_VEHICLES_IDS])
        near = self._sumo.poi.getContextSubscriptionResults(_GNB)
        names = sorted(near, key=self._register.number)
        notes.vehicles.append(self._register.numbers(names))
        notes.places_m.extend(chain.from_iterable(near[name][self._ask.VAR_POSITION][:2] for name in names))
        notes.speeds_mps.extend(near[name][self._ask.VAR_SPEED] for name in names)
