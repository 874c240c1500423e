"""Who sits at the wheel: the parameters of the driver model, one entry per vehicle."""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Bools, Floats
from vefl_sim.experiment.traffic_tables import MobilityTable
from vefl_sim.mobility.idm import IdmParams

DRAWS = 5  # uniform numbers that a driver is made of


class Drivers(NamedTuple):
    """Columns named as in `IdmParams`."""

    max_accel_mps2: Floats
    comfort_decel_mps2: Floats
    headway_s: Floats
    min_gap_m: Floats
    desired_speed_mps: Floats

    @classmethod
    def none(cls) -> "Drivers":
        """Nobody."""
        return cls(*np.empty((5, 0)))

    @classmethod
    def drawn(cls, typical: IdmParams, spread: float, uniform: Floats) -> "Drivers":
        """Drivers around a typical one, from `uniform` of shape (drivers, DRAWS).

        Every parameter is off by up to the spread either way, but nobody wants to drive faster than the typical
        driver: that is u_max, on which the sojourn bound relies.
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
        """Only these."""
        return Drivers(*(column[staying] for column in self))

    def join(self, newcomers: "Drivers") -> "Drivers":
        """With others appended."""
        return Drivers(*(np.concatenate(both) for both in zip(self, newcomers, strict=True)))


def typical_driver(mobility: MobilityTable) -> IdmParams:
    """The driver of an experiment, around whom the others spread."""
    return IdmParams(
        max_accel_mps2=mobility.max_accel_mps2,
        comfort_decel_mps2=mobility.comfort_decel_mps2,
        headway_s=mobility.headway_s,
        min_gap_m=mobility.min_gap_m,
        desired_speed_mps=mobility.max_speed_mps,
        length_m=mobility.length_m,
    )
