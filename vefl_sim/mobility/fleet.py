"""All vehicles on the streets, as arrays in ascending order of their number."""

from dataclasses import dataclass, fields

import numpy as np

from vefl_sim.mobility.arrays import BoolArray, FloatArray, IntArray


@dataclass
class Fleet:
    """One entry per vehicle in every array. Positions are of front bumpers, from the start of the edge."""

    vehicle: IntArray
    connected: BoolArray
    edge: IntArray
    position_m: FloatArray
    speed_mps: FloatArray
    next_edge: IntArray
    """Where it will turn; NONE on a stub that leads out."""
    came_from: IntArray
    """The edge before; NONE for a vehicle that has not crossed a junction yet."""
    limit_m: FloatArray
    """Position up to which its way is clear: a stop line, or infinity where it leads out."""
    cleared: BoolArray
    """Holds the junction ahead: the limit is the stop line of the next edge."""
    asked_step: IntArray
    """Step in which it first asked for the junction ahead; NONE before."""

    def __len__(self) -> int:
        return self.vehicle.size

    @classmethod
    def empty(cls) -> "Fleet":
        """Nobody."""
        whole, real, flag = np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_)
        return cls(whole, flag, whole, real, real, whole, whole, real, flag, whole)

    def keep(self, staying: BoolArray) -> None:
        """Drop everybody else."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[staying])

    def join(self, newcomers: "Fleet") -> None:
        """Append vehicles with higher numbers."""
        for field in fields(self):
            both = (getattr(self, field.name), getattr(newcomers, field.name))
            setattr(self, field.name, np.concatenate(both))
