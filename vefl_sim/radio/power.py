"""Open-loop power control of the uplink (TS 38.213, clause 7.1.1), without its closed-loop corrections.

    P = min(P_max, P0 + 10·lg(2^n̄·M) + α·PL)   in dBm

for M resource blocks of 12 subcarriers, where PL is the path loss with shadowing. So a CV spreads its power equally
over its pRBs, and all that is left to choose is which pRBs it gets.
"""

from dataclasses import dataclass

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.experiment.radio_tables import RadioTable

_BLOCK_HZ = 180e3  # 12 subcarriers of 15 kHz


def dbm_of(watts: float) -> float:
    """A power in dBm."""
    return 10 * float(np.log10(watts)) + 30


@dataclass(frozen=True)
class OpenLoop:
    """The transmit power of a CV on one pRB, by its path loss."""

    p0_dbm: float  # P0, received on one resource block of 15 kHz subcarriers if α = 1
    alpha: float  # α, the share of the path loss that is compensated
    blocks: float  # 2^n̄·M of one pRB of ours
    noise_w: float  # in a pRB
    max_power_w: float

    @classmethod
    def of(cls, radio: RadioTable, noise_w: float) -> "OpenLoop | None":
        """The power control of a [radio] table; None if powers are optimized."""
        if radio.power == "optimized":
            return None
        blocks = radio.prb_bandwidth_hz / _BLOCK_HZ  # 2^n̄·M, as blocks of numerology n̄ are 2^n̄ times as wide
        return cls(radio.p0_dbm, radio.alpha, blocks, noise_w, radio.max_tx_power_w)

    def prb_watts(self, snr_per_watt: Floats) -> Floats:
        """Power of CVs on one pRB, at most P_max; their path loss follows from the SNR per watt without fading."""
        with np.errstate(divide="ignore"):  # a channel without any gain: full power
            loss_db = -10 * np.log10(snr_per_watt * self.noise_w)
        dbm = self.p0_dbm + 10 * np.log10(self.blocks) + self.alpha * loss_db
        watts: Floats = np.minimum(self.max_power_w, 10 ** ((np.minimum(dbm, 400.0) - 30) / 10))
        return watts
