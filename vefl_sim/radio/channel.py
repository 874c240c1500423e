"""The channel between every CV and the gNB: large-scale loss times fast fading, over noise."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats
from vefl_sim.core.state import State
from vefl_sim.mobility.scene import Scene
from vefl_sim.radio.fading import Fading
from vefl_sim.radio.link import Link
from vefl_sim.radio.shadowing import LargeScale


class Channel(Protocol):
    """What the MAC and the planner know of the radio."""

    def move(self, scene: Scene) -> None:
        """Take new positions."""
        ...

    def mean_snr_per_watt(self, cvs: NDArray[np.int64]) -> Floats:
        """Without fast fading, one antenna, one pRB; shape (CVs,)."""
        ...

    def fading_gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """What fast fading and combining multiply it by; shape (slots, CVs, pRBs)."""
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

    def fading_gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """‖h‖² of each slot and pRB, relative to one antenna without fading."""
        return self.fading.gains(slot, slots, cvs)

    def state(self) -> State:
        """That of the large scale: fading belongs to the slot."""
        return self.large_scale.state()

    def restore(self, state: State) -> None:
        """Go on from there."""
        self.large_scale.restore(state)
