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
    """The radio channel as the MAC and the planner use it; a user-defined part can implement it."""

    def move(self, scene: Scene) -> None:
        """Update the channel to the vehicle positions of the next scene."""
        ...

    def mean_snr_per_watt(self, cvs: NDArray[np.int64]) -> Floats:
        """SNR per watt without fast fading, for one antenna and one pRB; shape (CVs,)."""
        ...

    def fading_gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """Factors on that SNR by fast fading and antenna combining; shape (slots, CVs, pRBs)."""
        ...


@dataclass(frozen=True)
class UmaChannel:
    """UMa path loss with shadowing, times SIMO fading with maximal ratio combining."""

    link: Link
    large_scale: LargeScale
    fading: Fading

    def move(self, scene: Scene) -> None:
        """Update path loss and shadowing, which are constant between two scenes."""
        self.large_scale.move(scene)

    def mean_snr_per_watt(self, cvs: NDArray[np.int64]) -> Floats:
        """SNR per watt from path loss and shadowing alone, shape (CVs,)."""
        return self.link.snr_per_watt(self.large_scale.loss_db(cvs))

    def fading_gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """‖h‖² of each slot, CV and pRB, relative to one antenna without fading."""
        return self.fading.gains(slot, slots, cvs)

    def state(self) -> State:
        """State of the large-scale channel for a checkpoint; fading has none, as it depends only on slot and CV."""
        return self.large_scale.state()

    def restore(self, state: State) -> None:
        """Restore the large-scale channel from a checkpoint."""
        self.large_scale.restore(state)
