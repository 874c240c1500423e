"""Link budget of one cell: SNR per watt, rates, the slots that an upload takes, and the broadcast of the model.

Power control is open loop (TS 38.213, clause 7.1.1), without its closed-loop corrections:

    P = min(P_max, P0 + 10·lg(2^n̄·M) + α·PL)   in dBm

for M resource blocks of 12 subcarriers, where PL is the path loss with shadowing. So a CV spreads its power equally
over its pRBs, and all that is left to choose is which pRBs it gets.

In the downlink, one transmission reaches all CVs, so it is neither beamformed nor adapted to the fading of a CV: its
rate is that of the slowest CV without fast fading, over all pRBs, and at least a floor at which a model is sent in any
case.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.experiment.experiment import Experiment, RadioTable

_BLOCK_HZ = 180e3  # 12 subcarriers of 15 kHz


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


@dataclass(frozen=True)
class Link:
    """Radio constants of a cell: bandwidth, noise, antennas, power."""

    prbs: int  # Z
    bandwidth_hz: float  # ω(1−υ): bandwidth of a pRB that carries data
    noise_w: float  # ως², noise power in a pRB
    antennas: int  # N
    max_power_w: float  # P_max
    open_loop: OpenLoop | None = None  # sets the power of CVs; None: powers are optimized, up to P_max

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
            open_loop=OpenLoop.of(radio, noise_w_per_hz * radio.prb_bandwidth_hz),
        )

    def power_w(self, snr_per_watt: Floats) -> Floats | float:
        """The most that CVs with this SNR per watt (without fading) send with on one pRB: P_max, or by open loop."""
        return self.open_loop.prb_watts(snr_per_watt) if self.open_loop else self.max_power_w

    def snr_per_watt(self, pathloss_db: Floats) -> Floats:
        """Mean SNR of one antenna and one pRB per watt of transmit power."""
        return 10 ** (-pathloss_db / 10) / self.noise_w

    def rate_bps(self, snr: Floats) -> Floats:
        """Shannon rate of a pRB: ω(1−υ)·log₂(1 + Γ). MCS, BLER and HARQ are not modelled, as in the paper."""
        rate: Floats = self.bandwidth_hz / np.log(2) * np.log1p(snr)
        return rate

    def mean_rate_bps(self, snr_per_watt: Floats, gain: Floats, probability: Floats) -> Floats:
        """Mean rate of CVs with all power on one pRB, whose fading gain has these values with these probabilities."""
        power_w = self.max_power_w if self.open_loop is None else self.open_loop.prb_watts(snr_per_watt)[:, None]
        snr = power_w * np.multiply.outer(snr_per_watt, gain)
        return self.rate_bps(snr) @ probability


def worst_case_slots(rate_bps: Floats, bits: float, prb_share: float, slot_s: float) -> Floats:
    """t̄_tx: whole slots needed to send `bits` at the worst-case rate on a share z̃ ≤ 1 of a pRB."""
    with np.errstate(divide="ignore"):  # a channel with rate 0 needs infinitely many slots
        return np.ceil(bits / (slot_s * prb_share * rate_bps))


@dataclass(frozen=True)
class Downlink:
    """Rates and times of broadcasts."""

    link: Link
    power_w: float  # of the gNB, over all pRBs
    noise_ratio: float  # noise of a CV's receiver over that of the gNB's
    rate_floor_bps: float
    share: float  # of the time that is downlink
    bits: int  # of the model

    @classmethod
    def of(cls, experiment: Experiment, link: Link, bits: int) -> "Downlink | None":
        """The downlink of an experiment; None if it is ignored."""
        downlink, tdd = experiment.downlink, experiment.mac.tdd
        if downlink.kind == "ignored":
            return None
        noise_ratio = 10 ** ((downlink.noise_figure_db - experiment.radio.noise_figure_db) / 10)
        share = tdd.count("D") / len(tdd) if "D" in tdd else 1.0  # without a pattern it has a band of its own
        return cls(link, downlink.tx_power_w, noise_ratio, downlink.rate_floor, share, bits)

    def rate_bps(self, snr_per_watt: Floats) -> float:
        """Rate of a broadcast to CVs with this SNR per watt in the uplink, where the path is the same, without fading.

        It is that of the slowest CV, or the floor.
        """
        snr = self.power_w / self.link.prbs * snr_per_watt / self.noise_ratio
        return max(self.rate_floor_bps, float(np.min(self.share * self.link.prbs * self.link.rate_bps(snr))))

    def duration_ns(self, rate_bps: float) -> int:
        """Time that the model takes."""
        return ceil(self.bits / rate_bps * 1e9)

    def energy_j(self, duration_ns: int) -> float:
        """Energy that the gNB transmits in this time; it sends in downlink slots only."""
        return self.power_w * self.share * duration_ns / 1e9
