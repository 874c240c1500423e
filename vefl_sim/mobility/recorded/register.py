"""Numbers for vehicles that SUMO identifies by name, and which of them are connected."""

from collections.abc import Sequence

import numpy as np

from vefl_sim.core.arrays import Bools, Ints
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.mobility.recorded.frame import MAX_VEHICLES


class VehicleNumbers:
    """Assigns the numbers 1, 2, … to vehicles in the order in which they first appear.

    Whether vehicle i is connected is the first draw of its own stream ("traffic", i), as in the built-in traffic.
    """

    def __init__(self, streams: Streams, cv_share: float) -> None:
        self._streams, self._cv_share = streams, cv_share
        self._numbers: dict[str, int] = {}
        self._connected = bytearray()

    def numbers(self, names: Sequence[str]) -> Ints:
        """Numbers of the vehicles with these names; new vehicles get the next free numbers."""
        return np.array([self.number(name) for name in names], np.int64)

    def number(self, name: str, may_connect: bool = True) -> int:
        """Number of one vehicle; `may_connect` (whether it may be a CV) only matters if the vehicle is new."""
        return self._numbers.get(name) or self._add(name, may_connect)

    def name(self, number: int) -> str:
        """Name of the vehicle with this number."""
        return list(self._numbers)[number - 1]

    def connected(self, numbers: Ints) -> Bools:
        """Which of the vehicles with these numbers are CVs."""
        return np.asarray(self._connected)[numbers - 1].view(np.bool_)

    def _add(self, name: str, may_connect: bool) -> int:
        if len(self._numbers) == MAX_VEHICLES:
            raise ExperimentError(f"There are more than {MAX_VEHICLES} vehicles: choose a shorter part of the traffic.")
        number = self._numbers[name] = len(self._numbers) + 1
        drawn = self._streams.generator("traffic", number).random() < self._cv_share
        self._connected.append(bool(drawn and may_connect))
        return number
