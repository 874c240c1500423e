"""The downlink: how long it takes to broadcast the model to CVs, and the energy that the gNB uses for it.

One transmission reaches all CVs, so it is neither beamformed nor adapted to the fading of a CV: its rate is that of the
slowest CV without fast fading, over all pRBs, and at least a floor at which a model is sent in any case.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.radio.link import Link


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

    def rates_bps(self, snr_per_watt: Floats) -> Floats:
        """Rate at which each CV can receive, by its SNR per watt in the uplink without fading: the path is the same."""
        snr = self.power_w / self.link.prbs * snr_per_watt / self.noise_ratio
        rates: Floats = self.share * self.link.prbs * self.link.rate_bps(snr)
        return rates

    def rate_bps(self, snr_per_watt: Floats) -> float:
        """Rate of a broadcast to these CVs: that of the slowest, or the floor."""
        return max(self.rate_floor_bps, float(np.min(self.rates_bps(snr_per_watt))))

    def duration_ns(self, rate_bps: float) -> int:
        """Time that the model takes."""
        return ceil(self.bits / rate_bps * 1e9)

    def energy_j(self, duration_ns: int) -> float:
        """Energy that the gNB transmits in this time; it sends in downlink slots only."""
        return self.power_w * self.share * duration_ns / 1e9
