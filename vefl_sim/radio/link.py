"""Link budget of the uplink of one cell: SNR per watt, rate, and the worst-case rate that plans assume."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammainccinv

from vefl_sim.core.arrays import Floats
from vefl_sim.experiment.radio_tables import RadioTable

SUBCARRIERS_PER_PRB = 12
SYMBOLS_PER_SLOT = 14


def subcarrier_spacing_hz(numerology: int) -> float:
    """Subcarrier spacing of numerology n̄: 15 kHz · 2^n̄."""
    return 15e3 * (1 << numerology)


def prb_bandwidth_hz(numerology: int) -> float:
    """Bandwidth of one physical resource block: 12 subcarriers."""
    return SUBCARRIERS_PER_PRB * subcarrier_spacing_hz(numerology)


def overhead(flexible_symbol_uplink: bool) -> float:
    """υ: the share of a slot's symbols without uplink data (downlink control, and the flexible one if not uplink)."""
    return (1 if flexible_symbol_uplink else 2) / SYMBOLS_PER_SLOT


_NODES = 64  # Gauss-Legendre nodes of the expectation over the worst pRB: 2e-5 relative at N = 4, 2e-4 at N = 1


@dataclass(frozen=True)
class Link:
    """Radio constants of a cell: bandwidth, noise, antennas, power."""

    prbs: int  # Z
    bandwidth_hz: float  # ω(1−υ): bandwidth of a pRB that carries data
    noise_w: float  # ως², noise power in a pRB
    antennas: int  # N
    max_power_w: float  # P_max
    fading: bool

    @classmethod
    def of(cls, radio: RadioTable) -> "Link":
        """The link of a [radio] table."""
        noise_w_per_hz = 10 ** ((radio.noise_dbm_per_hz + radio.noise_figure_db - 30) / 10)
        return cls(
            prbs=radio.prbs,
            bandwidth_hz=radio.prb_bandwidth_hz * (1 - overhead(radio.flexible_symbol_uplink)),
            noise_w=noise_w_per_hz * radio.prb_bandwidth_hz,
            antennas=radio.antennas,
            max_power_w=radio.max_tx_power_w,
            fading=radio.fading != "none",
        )

    def snr_per_watt(self, pathloss_db: Floats) -> Floats:
        """Mean SNR of one antenna and one pRB per watt of transmit power."""
        return 10 ** (-pathloss_db / 10) / self.noise_w

    def rate_bps(self, snr: Floats) -> Floats:
        """Shannon rate of a pRB: ω(1−υ)·log₂(1 + Γ). MCS, BLER and HARQ are not modelled, as in the paper."""
        return self.bandwidth_hz * np.log2(1 + snr)

    def worst_case_rate_bps(self, snr_per_watt: Floats) -> Floats:
        """Expected rate over fading with all power on the worst of Z pRBs (worstCaseTxTTIEstimate)."""
        snr = self.max_power_w * np.multiply.outer(snr_per_watt, self._worst_gain)
        return self.rate_bps(snr) @ self._weight

    def worst_case_slots(self, snr_per_watt: Floats, bits: float, prb_share: float, slot_s: float) -> Floats:
        """t̄_tx: whole slots needed to send `bits` at the worst-case rate on a share z̃ ≤ 1 of a pRB."""
        with np.errstate(divide="ignore"):  # a channel with rate 0 needs infinitely many slots
            return np.ceil(bits / (slot_s * prb_share * self.worst_case_rate_bps(snr_per_watt)))

    @cached_property
    def _weight(self) -> Floats:
        return np.polynomial.legendre.leggauss(_NODES)[1] / 2 if self.fading else np.ones(1)

    @cached_property
    def _worst_gain(self) -> Floats:
        """Quantiles of min_z ‖h_z‖², each ‖h_z‖² ~ Gamma(N, 1): P(min > x) = Q(N, x)^Z."""
        if not self.fading:
            return np.full(1, float(self.antennas))
        survival = (np.polynomial.legendre.leggauss(_NODES)[0] + 1) / 2
        gain: Floats = gammainccinv(self.antennas, survival ** (1 / self.prbs))
        return gain
