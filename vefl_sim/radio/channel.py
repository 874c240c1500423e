"""The channel between every CV and the gNB: large-scale loss times fast fading, over noise."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vefl_sim.mobility.scene import Scene
from vefl_sim.radio.fading import Fading
from vefl_sim.radio.link import Link
from vefl_sim.radio.shadowing import LargeScale

Floats = NDArray[np.float64]


class Channel(Protocol):
    """What the MAC and the planner know of the radio."""

    def move(self, scene: Scene) -> None:
        """Take new positions."""
        ...

    def mean_snr_per_watt(self, cvs: NDArray[np.int64]) -> Floats:
        """Without fast fading, one antenna, one pRB; shape (CVs,)."""
        ...

    def snr_per_watt(self, slot: int, cvs: NDArray[np.int64]) -> Floats:
        """‖h‖²/(ως²) of a slot; shape (CVs, pRBs)."""
        ...


@dataclass(frozen=True)
class UmaChannel:
    """UMa path loss with shadowing, times SIMO fading with maximal ratio combining."""

    link: Link
    large_scale: LargeScale
    fading: Fading

    def move(self, scene: Scene) -> None:
        """Path loss and shadowing are constant between two scenes."""
        self.large_scale.move(scene)

    def mean_snr_per_watt(self, cvs: NDArray[np.int64]) -> Floats:
        """From path loss and shadowing alone."""
        return self.link.snr_per_watt(self.large_scale.loss_db(cvs))

    def snr_per_watt(self, slot: int, cvs: NDArray[np.int64]) -> Floats:
        """The instantaneous channel of the slot."""
        return self.mean_snr_per_watt(cvs)[:, None] * self.fading.gains(slot, cvs)
