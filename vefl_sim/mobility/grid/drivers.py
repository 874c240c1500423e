"""The drivers: parameters of the IDM as arrays, one entry per vehicle."""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Bools, Floats
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
    def none(cls) -> "Drivers":
        """Columns of length 0."""
        return cls(*np.empty((5, 0)))

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

    def keep(self, staying: Bools) -> "Drivers":
        """The drivers for which `staying` is true."""
        return Drivers(*(column[staying] for column in self))

    def join(self, newcomers: "Drivers") -> "Drivers":
        """These drivers with the newcomers appended."""
        return Drivers(*(np.concatenate(both) for both in zip(self, newcomers, strict=True)))


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
