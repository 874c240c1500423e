"""All vehicles on the streets, as arrays in ascending order of their number."""

from typing import Any, NamedTuple

import numpy as np

from vefl_sim.core.arrays import Bools, Floats, Ints
from vefl_sim.core.state import State
from vefl_sim.mobility.grid.drivers import Drivers


class Fleet(NamedTuple):
    """One entry per vehicle in every array. Positions are of front bumpers, from the start of the edge.

    A named tuple, because compiled code takes that as one argument; it changes the entries in place.
    """

    vehicle: Ints
    connected: Bools
    driver: Drivers
    edge: Ints
    position_m: Floats
    speed_mps: Floats
    next_edge: Ints
    """Where it will turn; NONE on a stub that leads out."""
    came_from: Ints
    """The edge before; NONE for a vehicle that has not crossed a junction yet."""
    goal: Ints
    """The stub over which it means to leave; NONE for a vehicle that wanders."""
    limit_m: Floats
    """Position up to which its way is clear: a stop line, or infinity where it leads out."""
    cleared: Bools
    """Holds the junction ahead: the limit is the stop line of the next edge."""
    asked_step: Ints
    """Step in which it first asked for the junction ahead; NONE before."""

    @property
    def size(self) -> int:
        """How many vehicles there are."""
        return self.vehicle.size

    @classmethod
    def empty(cls) -> "Fleet":
        """Nobody."""
        whole, real, flag = np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_)
        return cls(whole, flag, Drivers.none(), whole, real, real, whole, whole, whole, real, flag, whole)

    def state(self) -> State:
        """All columns; copies, because compiled code changes them in place."""
        columns = {name: column.copy() for name, column in self._columns().items()}
        return columns | {"driver": self.driver._asdict()}

    @classmethod
    def of(cls, state: State) -> "Fleet":
        """The fleet with this state."""
        return cls(**state | {"driver": Drivers(**state["driver"])})

    def keep(self, staying: Bools) -> "Fleet":
        """A fleet of only these."""
        columns = {name: column[staying] for name, column in self._columns().items()}
        return Fleet(driver=self.driver.keep(staying), **columns)

    def join(self, newcomers: "Fleet") -> "Fleet":
        """A fleet with vehicles of higher numbers appended."""
        theirs = newcomers._columns()
        columns = {name: np.concatenate((column, theirs[name])) for name, column in self._columns().items()}
        return Fleet(driver=self.driver.join(newcomers.driver), **columns)

    def _columns(self) -> dict[str, Any]:
        """All arrays but those of the drivers."""
        columns = self._asdict()
        del columns["driver"]
        return columns
