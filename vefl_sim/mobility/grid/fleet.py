"""All vehicles on the streets, as arrays in ascending order of their number."""

from typing import Any, NamedTuple

import numpy as np

from vefl_sim.core.arrays import Bools, Floats, Ints
from vefl_sim.mobility.grid.drivers import Drivers


class Fleet(NamedTuple):
    """One entry per vehicle in every array. Positions are of front bumpers, from the start of the edge.

    A named tuple, because compiled code accepts it as one argument and changes the entries in place.
    """

    vehicle: Ints
    connected: Bools
    driver: Drivers
    edge: Ints
    position_m: Floats
    speed_mps: Floats
    next_edge: Ints
    """Edge that the vehicle takes next; NONE on a stub that leads out."""
    came_from: Ints
    """Previous edge; NONE for a vehicle that has not crossed a junction yet."""
    goal: Ints
    """Stub over which the vehicle will leave; NONE for a vehicle on a random walk."""
    limit_m: Floats
    """Position up to which the way is clear: a stop line, or infinity on a stub that leads out."""
    cleared: Bools
    """Whether the junction ahead is reserved for the vehicle; then `limit_m` is the stop line of the next edge."""
    asked_step: Ints
    """Step in which the vehicle first requested the junction ahead; NONE before."""

    @property
    def size(self) -> int:
        """Number of vehicles."""
        return self.vehicle.size

    @classmethod
    def empty(cls) -> "Fleet":
        """A fleet without vehicles."""
        ints, floats, flags = np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_)
        return cls(ints, flags, Drivers.none(), ints, floats, floats, ints, ints, ints, floats, flags, ints)

    def keep(self, staying: Bools) -> "Fleet":
        """The fleet of the vehicles for which `staying` is true."""
        columns = {name: column[staying] for name, column in self._columns().items()}
        return Fleet(driver=self.driver.keep(staying), **columns)

    def join(self, newcomers: "Fleet") -> "Fleet":
        """The fleet with the newcomers appended, whose numbers are higher."""
        new_columns = newcomers._columns()
        columns = {name: np.concatenate((column, new_columns[name])) for name, column in self._columns().items()}
        return Fleet(driver=self.driver.join(newcomers.driver), **columns)

    def _columns(self) -> dict[str, Any]:
        """All arrays except those of the drivers."""
        columns = self._asdict()
        del columns["driver"]
        return columns
