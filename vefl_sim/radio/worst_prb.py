"""The worst pRB of a CV: the distribution of its gain, from which plans compute the rate that they count on.

A law says how the gains of a CV's pRBs are distributed. Where pRBs are independent, the distribution of the worst is a
formula; else it is estimated from draws that are the same in every run. What plans can count on where the gNB's
knowledge is old is in `arrival`.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.radio.delay_profile import Complex, DelayProfile

NODES = 64  # of a distribution: mean rates are exact to 2e-5 relative at N = 4, 2e-4 at N = 1
_DRAWS = 16_384  # standard error of a mean rate: 1 %, with one antenna 2 %; of the share that arrives: 3 % at Z = 10
_NUMBERS = 3_000_000  # drawn in all: fewer draws if pRBs and antennas are many
_AT_ONCE = 500_000


@dataclass(frozen=True)
class GainLaw:
    """How ‖h‖² of the pRBs of a CV is distributed, and how old the gains are that a grant is based on."""

    prbs: int
    antennas: int
    k_factor: float = 0.0  # K: power of the direct path over that of the scattered ones; ∞: the mean channel
    profile: DelayProfile | None = None  # None: independent pRBs
    rms_s: float = 0.0  # delay spread of the scattered paths, with a profile
    correlation: float = 1.0  # of the scattered paths when the channel was measured with those of the slot
    wavelengths: float = 0.0  # driven between the two, which turns the direct path

    def worst(self) -> tuple[Floats, Floats]:
        """Gains of the worst pRB, min_z ‖h_z‖², and their probabilities, which sum to one."""
        return _worst(replace(self, correlation=1.0, wavelengths=0.0))

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

    def draw(self) -> tuple[Floats, Floats]:
        """Gains of all pRBs when they were measured, and in the slot of the grant; shape (draws, pRBs) each.

        The draws are the same in every run.
        """
        if np.isinf(self.k_factor):
            mean = np.full((1, self.prbs), float(self.antennas))
            return mean, mean
        size = self.prbs * self.antennas
        count = NODES * max(8, min(_DRAWS, _NUMBERS // size) // NODES)
        rng, at_once = np.random.default_rng(0), max(1, _AT_ONCE // size)
        mixing = self.profile.mixing(self.rms_s) if self.profile else None
        parts = [_drawn(self, mixing, rng, min(at_once, count - first)) for first in range(0, count, at_once)]
        measured, now = (np.concatenate(column) for column in zip(*parts, strict=True))
        return measured, now


@cache
def _worst(law: GainLaw) -> tuple[Floats, Floats]:
    if np.isinf(law.k_factor):
        return np.full(1, float(law.antennas)), np.ones(1)
    if law.independent is not None:
        return quantiles_of_least(law.antennas, law.independent, law.k_factor)
    least = np.sort(law.draw()[0].min(axis=1))
    return least.reshape(NODES, -1).mean(axis=1), np.full(NODES, 1 / NODES)


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


def _drawn(law: GainLaw, mixing: Complex | None, rng: np.random.Generator, draws: int) -> tuple[Floats, Floats]:
    """Some draws of the gains of all pRBs when they were measured, and in the slot."""

    def scattered() -> Complex:
        parts = rng.standard_normal((2, draws, law.antennas, law.prbs))
        unit = parts[0] + 1j * parts[1]
        mixed: Complex = unit if mixing is None else np.einsum("dau,zu->daz", unit, mixing)  # not by BLAS: see `mixing`
        mixed /= np.sqrt(2 * (law.k_factor + 1))
        return mixed

    strength = np.sqrt(law.k_factor / (law.k_factor + 1))
    direct = strength * np.exp(2j * np.pi * rng.random((draws, law.antennas, 1)))
    then = scattered()
    measured: Floats = (np.abs(direct + then) ** 2).sum(axis=1)
    if law.is_known:
        return measured, measured
    kept = law.correlation
    turned = direct * np.exp(2j * np.pi * law.wavelengths * np.cos(2 * np.pi * rng.random((draws, 1, 1))))
    now: Floats = (np.abs(turned + kept * then + np.sqrt(1 - kept**2) * scattered()) ** 2).sum(axis=1)
    return measured, now
