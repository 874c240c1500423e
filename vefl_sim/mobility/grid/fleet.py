"""All vehicles on the streets and their drivers, as arrays in ascending order of the vehicle's number."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from vefl_sim.core.arrays import Bools, Floats, Ints
from vefl_sim.experiment.experiment import MobilityTable
from vefl_sim.mobility.idm import IdmParams

DRAWS = 5  # uniform random numbers that determine a driver


class Drivers(NamedTuple):
    """Parameters of all drivers; the columns are named as in `IdmParams`."""

    max_accel_mps2: Floats
    comfort_decel_mps2: Floats
    headway_s: Floats
    min_gap_m: Floats
    desired_speed_mps: Floats

    @classmethod
    def drawn(cls, typical: IdmParams, spread: float, uniform: Floats) -> "Drivers":
        """Drivers around a typical one, from `uniform` of shape (drivers, DRAWS).

        Every parameter deviates by up to the spread in both directions, but no driver wants to drive faster than the
        typical one: that speed is u_max, on which the sojourn bound relies.
        """
        factor = 1 + spread * (2 * uniform - 1)
        return cls(
            max_accel_mps2=typical.max_accel_mps2 * factor[:, 0],
            comfort_decel_mps2=typical.comfort_decel_mps2 * factor[:, 1],
            headway_s=typical.headway_s * factor[:, 2],
            min_gap_m=typical.min_gap_m * factor[:, 3],
            desired_speed_mps=typical.desired_speed_mps * (1 - spread * uniform[:, 4]),
        )


def typical_driver(mobility: MobilityTable) -> IdmParams:
    """The typical driver of an experiment, around which all drivers vary."""
    return IdmParams(
        max_accel_mps2=mobility.max_accel_mps2,
        comfort_decel_mps2=mobility.comfort_decel_mps2,
        headway_s=mobility.headway_s,
        min_gap_m=mobility.min_gap_m,
        desired_speed_mps=mobility.max_speed_mps,
        length_m=mobility.length_m,
    )


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

    def keep(self, staying: Bools) -> "Fleet":
        """The fleet of the vehicles for which `staying` is true."""
        fleet: Fleet = _by_column(lambda column: column[staying], self)
        return fleet

    def join(self, newcomers: "Fleet") -> "Fleet":
        """The fleet with the newcomers appended, whose numbers are higher."""
        fleet: Fleet = _by_column(lambda *columns: np.concatenate(columns), self, newcomers)
        return fleet


def _by_column(change: Callable[..., Any], *parts: Any) -> Any:
    """A fleet, or drivers, whose columns are what a function makes of the same columns of others."""
    columns = zip(*parts, strict=True)
    return type(parts[0])(*(_by_column(change, *c) if isinstance(c[0], tuple) else change(*c) for c in columns))
