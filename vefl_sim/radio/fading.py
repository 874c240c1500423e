"""Fast fading: N-antenna SIMO with maximal ratio combining, one independent draw per slot, CV and pRB.

A gain belongs to (slot, CV), not to the order of calls: a counter-based generator (Philox) is set to the CV
and the block of slots, so that every scheme sees the same channel whichever slots it uses.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats

BLOCK_SLOTS = 64  # drawn at a time
_KEPT_CVS = 500


class Fading(Protocol):
    """Power gains ‖h‖² relative to the large-scale channel of one antenna."""

    def gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """Of `slots` slots from `slot` on, within one block of BLOCK_SLOTS; shape (slots, CVs, pRBs)."""
        ...


class MeanChannel:
    """No fading: MRC of N equal antennas, gain N on every pRB."""

    def __init__(self, prbs: int, antennas: int) -> None:
        self._row = np.full(prbs, float(antennas))

    def gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """N everywhere."""
        return np.tile(self._row, (slots, len(cvs), 1))


class RayleighFading:
    """‖h‖² is a sum of N unit exponentials: Gamma(N, 1), mean N."""

    def __init__(self, key: int, prbs: int, antennas: int) -> None:
        self._key = key
        self._shape = (BLOCK_SLOTS, prbs, antennas)
        self._blocks: dict[int, tuple[int, Floats]] = {}

    def gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """The rows of these slots, from blocks drawn once."""
        block, row = divmod(slot, BLOCK_SLOTS)
        return np.stack([self._block(int(cv), block)[row : row + slots] for cv in cvs], axis=1)

    def _block(self, cv: int, block: int) -> Floats:
        kept = self._blocks.get(cv)
        if kept is None or kept[0] != block:
            if len(self._blocks) > _KEPT_CVS:
                self._blocks.clear()  # most have left; what is still needed is drawn again, the same
            kept = (block, self._draw(cv, block))
            self._blocks[cv] = kept
        return kept[1]

    def _draw(self, cv: int, block: int) -> Floats:
        # Two words of the 256-bit counter name the block, the low two count the draws inside it.
        philox = np.random.Philox(key=self._key, counter=[0, 0, block, cv])
        uniform = np.random.Generator(philox).random(self._shape)
        # Inversion, not the ziggurat: a fixed number of draws per gain.
        gains: Floats = -np.log1p(-uniform).sum(axis=2)
        return gains
