"""The worst pRB of a CV: the distribution of its gain, from which plans compute the rate that they count on.

A law says how the gains of a CV's pRBs are distributed. Where pRBs are independent and the channel is known, the
distribution of the worst is a formula; else it is estimated from draws that are the same in every run.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.radio.delay_profile import Complex, DelayProfile

NODES = 64  # of a distribution: mean rates are exact to 2e-5 relative at N = 4, 2e-4 at N = 1
_DRAWS = 16_384  # a mean rate then has a standard error of less than 1 %
_NUMBERS = 40_000_000  # complex ones, drawn in all; fewer draws if pRBs and antennas are many
_AT_ONCE = 500_000


@dataclass(frozen=True)
class GainLaw:
    """How ‖h‖² of the pRBs of a CV is distributed, and how old the gains are that a grant is based on."""

    prbs: int
    antennas: int
    k_factor: float = 0.0  # K: power of the direct path over that of the scattered ones
    profile: DelayProfile | None = None  # None: independent pRBs
    rms_s: float = 0.0  # delay spread of the scattered paths, with a profile
    correlation: float = 1.0  # of the scattered paths when the channel was measured with those of the slot
    wavelengths: float = 0.0  # driven between the two, which turns the direct path

    def worst(self) -> tuple[Floats, Floats]:
        """Gains of the worst pRB when it was measured, and the probability that it is that and that the grant arrives.

        The probabilities sum to one if the channel is known, and to less if a grant can be above the capacity.
        """
        return _worst(self)

    @property
    def is_known(self) -> bool:
        """Whether a grant is based on the channel of its own slot."""
        return self.correlation == 1.0 and not self.wavelengths

    @property
    def independent(self) -> int | None:
        """Number of independent pRBs, if all are independent or all alike; else None."""
        if self.profile is None:
            return self.prbs
        return 1 if self.rms_s == 0 else None


@cache
def _worst(law: GainLaw) -> tuple[Floats, Floats]:
    if law.is_known and law.independent is not None:
        return quantiles_of_least(law.antennas, law.independent, law.k_factor)
    return _estimated(law)


def quantiles_of_least(antennas: int, prbs: int, k_factor: float = 0.0) -> tuple[Floats, Floats]:
    """Quantiles of the least of Z independent gains at Gauss-Legendre nodes: P(least > x) = P(gain > x)^Z.

    Without a direct path a gain is Gamma(N, 1); with it, 2(K + 1) times the gain is noncentral χ² with 2N degrees of
    freedom and the parameter 2NK.
    """
    from scipy.special import chndtrix, gammainccinv  # slow to import, and not needed to read an experiment

    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    above = ((nodes + 1) / 2) ** (1 / prbs)
    if not k_factor:
        return gammainccinv(antennas, above), weights / 2
    gain = chndtrix(1 - above, 2 * antennas, 2 * antennas * k_factor) / (2 * (k_factor + 1))
    return gain, weights / 2


def _estimated(law: GainLaw) -> tuple[Floats, Floats]:
    """The distribution from draws, as NODES groups of the same size: mean gain, and share of grants that arrive."""
    size = law.prbs * law.antennas
    draws = NODES * max(8, min(_DRAWS, _NUMBERS // size) // NODES)
    rng, at_once = np.random.default_rng(0), max(1, _AT_ONCE // size)
    parts = [_drawn(law, rng, min(at_once, draws - first)) for first in range(0, draws, at_once)]
    measured, arrives = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(measured, kind="stable").reshape(NODES, -1)
    return measured[order].mean(axis=1), arrives[order].mean(axis=1) / NODES


def _drawn(law: GainLaw, rng: np.random.Generator, draws: int) -> tuple[Floats, Floats]:
    """Gain of the worst pRB when it was measured, and whether (1 or 0) the same pRB carries as much in its slot."""
    mixing = np.eye(law.prbs) if law.profile is None else law.profile.mixing(law.rms_s)

    def scattered() -> Complex:
        parts = rng.standard_normal((2, draws, law.antennas, law.prbs))
        mixed: Complex = (parts[0] + 1j * parts[1]) @ mixing.T / np.sqrt(2 * (law.k_factor + 1))
        return mixed

    strength = np.sqrt(law.k_factor / (law.k_factor + 1))
    direct = strength * np.exp(2j * np.pi * rng.random((draws, law.antennas, 1)))
    then = scattered()
    measured = (np.abs(direct + then) ** 2).sum(axis=1)
    worst = measured.argmin(axis=1)[:, None]
    least = np.take_along_axis(measured, worst, 1)[:, 0]
    if law.is_known:
        return least, np.ones(draws)
    kept = law.correlation
    turned = direct * np.exp(2j * np.pi * law.wavelengths * np.cos(2 * np.pi * rng.random((draws, 1, 1))))
    now = (np.abs(turned + kept * then + np.sqrt(1 - kept**2) * scattered()) ** 2).sum(axis=1)
    return least, (np.take_along_axis(now, worst, 1)[:, 0] >= least).astype(np.float64)
