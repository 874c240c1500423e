"""The vehicles of a SUMO recording: their numbers, and who of them is connected."""

from collections.abc import Sequence

import numpy as np

from vefl_sim.core.arrays import Bools, Ints
from vefl_sim.core.rng import Streams


class VehicleNumbers:
    """Gives out the numbers 1, 2, … in the order in which vehicles first appear.

    Whether vehicle i is connected is the first draw of its own stream ("traffic", i), as in our own traffic.
    """

    def __init__(self, streams: Streams, cv_share: float) -> None:
        self._streams, self._cv_share = streams, cv_share
        self._numbers: dict[str, int] = {}
        self._connected = bytearray()

    def numbers(self, names: Sequence[str]) -> Ints:
        """The numbers of these vehicles; the unknown ones get the next."""
        return np.array([self.number(name) for name in names], np.int64)

    def number(self, name: str, may_connect: bool = True) -> int:
        """The number of one of them; whether it may be a CV is asked when it is new."""
        return self._numbers.get(name) or self._enter(name, may_connect)

    def name(self, number: int) -> str:
        """Whose number it is."""
        return list(self._numbers)[number - 1]

    def connected(self, numbers: Ints) -> Bools:
        """Which of them are CVs."""
        return np.asarray(self._connected)[numbers - 1].view(np.bool_)

    def _enter(self, name: str, may_connect: bool) -> int:
        number = self._numbers[name] = len(self._numbers) + 1
        drawn = self._streams.generator("traffic", number).random() < self._cv_share
        self._connected.append(bool(drawn and may_connect))
        return number
