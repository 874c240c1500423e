"""Correlation over frequency: an exponential power delay profile, by its root-mean-square delay spread.

With the spread τ, two pRBs that are Δf apart are correlated by 1/(1 + j2πΔfτ). The medians of τ for urban macro cells
are those of TR 38.901, table 7.5-6: lg τ is −6.955 − 0.0963·lg f with and −6.28 − 0.204·lg f without line of sight,
where f is the carrier in GHz, and 6 below 6 GHz (a note of the table).
"""

from dataclasses import dataclass
from math import log10, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats
from vefl_sim.experiment.experiment import RadioTable

_LEAST_GHZ = 6.0
_ALIKE = 1e-13  # of a pRB's power: pRBs that differ by less are taken in their order, not by rounding errors
_DETERMINED = 1e-12  # of a pRB's power: if no pRB has more that the ones before leave open, these determine all

Complex = NDArray[np.complexfloating]


def uma_delay_spread_s(carrier_ghz: float, *, sight: bool) -> float:
    """Median delay spread of an urban macro cell with or without line of sight."""
    lg_ghz = log10(max(carrier_ghz, _LEAST_GHZ))
    return float(10 ** (-6.955 - 0.0963 * lg_ghz if sight else -6.28 - 0.204 * lg_ghz))


@dataclass(frozen=True)
class DelayProfile:
    """The delay spread of a cell; with `spread_s` = None all pRBs fade independently."""

    spread_s: float | Literal["38.901"] | None
    carrier_ghz: float
    prbs: int
    bandwidth_hz: float  # ω, the distance between the centres of two pRBs

    @classmethod
    def of(cls, radio: RadioTable) -> "DelayProfile":
        """The profile of a [radio] table."""
        return cls(radio.delay_spread_s, radio.carrier_ghz, radio.prbs, radio.prb_bandwidth_hz)

    @property
    def depends_on_sight(self) -> bool:
        """Whether CVs with and without line of sight have different spreads."""
        return self.spread_s == "38.901"

    def rms_s(self, *, sight: bool) -> float | None:
        """The delay spread of a CV; None if its pRBs are independent."""
        if self.spread_s == "38.901":
            return uma_delay_spread_s(self.carrier_ghz, sight=sight)
        return self.spread_s

    def scattered_rms_s(self, k_factor: float, *, sight: bool) -> float | None:
        """The spread of the scattered paths alone, where a direct path without delay is K times as strong.

        The spread of all paths is that of the profile: of a share q = 1/(K + 1) that is exponential with mean τ, the
        variance is q(2 − q)·τ².
        """
        rms_s, share = self.rms_s(sight=sight), 1 / (k_factor + 1)
        return None if rms_s is None else rms_s / sqrt(share * (2 - share))

    def correlation(self, rms_s: float) -> Complex:
        """Correlation of the complex gains of any two pRBs, shape (pRBs, pRBs)."""
        apart_hz = self.bandwidth_hz * np.subtract.outer(np.arange(self.prbs), np.arange(self.prbs))
        correlation: Complex = 1 / (1 + 2j * np.pi * rms_s * apart_hz)
        return correlation

    def mixing(self, rms_s: float) -> Complex:
        """A matrix F with F·Fᴴ = correlation: F times independent unit Gaussians gives the gains of the pRBs.

        Cholesky's, for the pRB first that the ones before determine least, so that rounding does not grow where pRBs
        are nearly alike. Not by LAPACK, whose last digits depend on the number of cores, and with ties decided by the
        number of the pRB, so that all machines get the same F.
        """
        rest, mixing = self.correlation(rms_s), np.zeros((self.prbs, self.prbs), np.complex128)
        for column in range(self.prbs):
            left_open = rest.diagonal().real
            prb = int(np.argmax(left_open >= left_open.max() - _ALIKE))
            if rest[prb, prb].real <= _DETERMINED:
                break
            mixing[:, column] = rest[:, prb] / sqrt(rest[prb, prb].real)
            rest = rest - np.multiply.outer(mixing[:, column], mixing[:, column].conj())
        return mixing

    def turns(self, delay_s: Floats) -> Floats:
        """Turns of phase of paths with these delays at the centre of each pRB; shape (paths, pRBs)."""
        turns: Floats = -np.multiply.outer(delay_s, self.bandwidth_hz * np.arange(self.prbs))
        return turns
