"""Fast fading that is independent from slot to slot: N-antenna SIMO with maximal ratio combining.

A gain belongs to (slot, CV), not to the order of calls: a counter-based generator (Philox) is set to the CV
and the block of slots, so that every scheme sees the same channel whichever slots it uses.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats
from vefl_sim.radio.delay_profile import DelayProfile
from vefl_sim.radio.route import Route
from vefl_sim.radio.worst_prb import GainLaw

BLOCK_SLOTS = 64  # slots drawn at a time
_KEPT_BLOCKS = 500  # in memory, or more if as many are in use
_PER_BURST = 5  # blocks that a burst of 256 slots may touch


class Fading(Protocol):
    """Power gains ‖h‖² relative to the large-scale channel of one antenna."""

    def gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """Gains of `slots` slots from `slot` on; shape (slots, CVs, pRBs)."""
        ...

    def law(self, *, sight: bool = False) -> GainLaw:
        """Distribution of the gains of a CV with or without line of sight, which plans use."""
        ...


class MeanChannel:
    """No fading: MRC of N equal antennas, gain N on every pRB."""

    def __init__(self, prbs: int, antennas: int) -> None:
        self._row = np.full(prbs, float(antennas))

    def gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """The constant gain N; shape (slots, CVs, pRBs)."""
        return np.tile(self._row, (slots, len(cvs), 1))

    def law(self, *, sight: bool = False) -> GainLaw:
        """Gain N on every pRB: a direct path and nothing else."""
        return GainLaw(len(self._row), int(self._row[0]), k_factor=np.inf)


class RayleighFading:
    """Rayleigh fading: ‖h‖² is a sum of N unit exponentials, Gamma(N, 1) with mean N."""

    def __init__(self, key: int, prbs: int, antennas: int, correlation: float = 1.0) -> None:
        """`correlation`: of the gains when they are measured with those of the slot, for the law that plans use."""
        self._philox = np.random.Philox(key=key)
        self._uniform = np.random.Generator(self._philox)
        self._shape = (BLOCK_SLOTS, prbs, antennas)
        self._blocks: dict[tuple[int, int], Floats] = {}  # by CV and number of the block
        self._most = _KEPT_BLOCKS
        self._law = GainLaw(prbs, antennas, correlation=correlation)

    def gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """Gains of these slots, from blocks that are drawn once and kept; shape (slots, CVs, pRBs)."""
        gains = np.empty((slots, len(cvs), self._shape[1]))
        done = 0
        while done < slots:
            block, row = divmod(slot + done, BLOCK_SLOTS)
            count = min(slots - done, BLOCK_SLOTS - row)
            for column, cv in enumerate(cvs.tolist()):
                gains[done : done + count, column] = self._block(cv, block)[row : row + count]
            done += count
        return gains

    def law(self, *, sight: bool = False) -> GainLaw:
        """Gamma(N, 1), independent for each pRB, or correlated by a delay spread."""
        return self._law

    def _block(self, cv: int, block: int) -> Floats:
        kept = self._blocks.get((cv, block))
        if kept is None:
            if len(self._blocks) > self._most:
                self._forget(block)
            kept = self._blocks[cv, block] = self._draw(cv, block)
        return kept

    def _forget(self, block: int) -> None:
        """Drop the blocks that are over, and keep at least as many as this burst may need."""
        self._blocks = {key: gains for key, gains in self._blocks.items() if block - _PER_BURST < key[1]}
        self._most = max(_KEPT_BLOCKS, 2 * len(self._blocks))

    def _draw(self, cv: int, block: int) -> Floats:
        # By inversion, not the ziggurat method, so that each gain needs a fixed number of draws.
        draws = self._uniforms(cv, block, self._shape)
        np.log1p(np.negative(draws, out=draws), out=draws)
        gains: Floats = -draws.sum(axis=-1)
        return gains

    def _uniforms(self, cv: int, block: int, shape: tuple[int, ...]) -> Floats:
        # The high two words of the 256-bit counter are block and CV, the low two count the draws inside the block.
        state = self._philox.state  # set, because a new generator takes as long as the draws
        state["state"]["counter"][:] = 0, 0, block, cv
        self._philox.state = state | {"buffer_pos": 4}  # nothing is left of the block before
        return self._uniform.random(shape)


class CorrelatedRayleighFading(RayleighFading):
    """Rayleigh fading, independent from slot to slot, whose pRBs are correlated by a delay spread."""

    def __init__(self, key: int, profile: DelayProfile, law: GainLaw) -> None:
        super().__init__(key, law.prbs, law.antennas)
        self._law, self._mixing = law, profile.mixing(law.rms_s)

    def _draw(self, cv: int, block: int) -> Floats:
        slots, prbs, antennas = self._shape
        draws = self._uniforms(cv, block, (slots, antennas, prbs, 2))
        unit = np.sqrt(-np.log1p(-draws[..., 0])) * np.exp(2j * np.pi * draws[..., 1])
        mixed = np.einsum("sau,zu->saz", unit, self._mixing)  # not by BLAS, whose sums depend on the number of cores
        gains: Floats = (mixed.real**2 + mixed.imag**2).sum(axis=1)
        return gains


class SelectiveRayleighFading:
    """Correlated Rayleigh fading of CVs with and without line of sight, which may have different delay spreads."""

    def __init__(self, key: int, antennas: int, profile: DelayProfile, route: Route, correlation: float = 1.0) -> None:
        """`correlation`: of the gains when they are measured with those of the slot, for the law that plans use."""
        self._profile, self._route = profile, route
        spread_s = {sight: profile.rms_s(sight=sight) or 0.0 for sight in (False, True)}
        self._kinds = {
            sight: CorrelatedRayleighFading(
                key, profile, GainLaw(profile.prbs, antennas, profile=profile, rms_s=rms_s, correlation=correlation)
            )
            for sight, rms_s in spread_s.items()
        }

    def gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """Gains of these slots with the delay spread that each CV has in them; shape (slots, CVs, pRBs)."""
        gains = self._kinds[False].gains(slot, slots, cvs)
        if not self._profile.depends_on_sight:
            return gains
        sight = self._route.sight(slot, slots, cvs)
        return np.where(sight[:, :, None], self._kinds[True].gains(slot, slots, cvs), gains)

    def law(self, *, sight: bool = False) -> GainLaw:
        """Gamma(N, 1), correlated by the delay spread of a CV with or without line of sight."""
        return self._kinds[sight].law()
