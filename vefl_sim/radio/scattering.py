"""Fading with the Doppler spectrum of Clarke and Jakes, by the distance that a CV has driven ("jakes", "rician").

The signal of a CV reaches every antenna over PATHS scattered paths of equal power from all around. On the way over a
distance x the phase of a path from the angle θ turns by 2πx·cos θ/λ. So the gain of an antenna is correlated by
J₀(2πΔx/λ) over a distance Δx, and a CV that waits keeps its channel. A path has a delay, too, from the delay profile,
which correlates the pRBs; without a profile each pRB has phases of its own. "rician" adds a direct path for CVs with
line of sight. Angles, delays and phases belong to the CV: they are drawn by a counter-based generator from its number.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.radio.delay_profile import DelayProfile
from vefl_sim.radio.route import Route
from vefl_sim.radio.worst_prb import GainLaw

PATHS = 32  # J₀ is then met by the mean over CVs at any distance
_FIRST_ZERO = 2.404825557695773  # of J₀, which falls up to there and stays above −0.41 beyond
_KEPT_NUMBERS = 8_000_000  # of the paths of CVs in memory


class Paths(NamedTuple):
    """The paths of one CV; amplitudes have one row per path and one column per antenna and pRB, antenna by antenna."""

    turns_per_m: Floats  # cos θ/λ
    real: Floats
    imag: Floats


@dataclass(frozen=True)
class Propagation:
    """What the paths of all CVs have in common."""

    key: int  # of the generator
    prbs: int
    antennas: int
    wavelength_m: float
    k_factor: float  # K, power of the direct path over that of the scattered ones, for CVs with line of sight
    profile: DelayProfile

    @property
    def depends_on_sight(self) -> bool:
        """Whether CVs with and without line of sight have different paths."""
        return self.k_factor > 0 or self.profile.depends_on_sight

    def paths(self, cv: int, *, sight: bool) -> Paths:
        """The paths of a CV with or without line of sight; the draws are the same for both."""
        draw = np.random.Generator(np.random.Philox(key=self.key, counter=[0, 0, 0, cv])).random
        angle = (np.arange(PATHS) + draw(PATHS)) / PATHS  # in turns; one in each sector
        level = (np.argsort(draw(PATHS)) + draw(PATHS)) / PATHS  # quantiles of the delays, in random order
        direct_angle, direct_phase = draw(), draw(self.antennas)
        k_factor = self.k_factor if sight else 0.0
        rms_s = self.profile.scattered_rms_s(k_factor, sight=sight)
        if rms_s is None:
            phase = draw((PATHS, self.antennas, self.prbs))
        else:
            phase = draw((PATHS, self.antennas, 1)) + self.profile.turns(-rms_s * np.log1p(-level))[:, None]
        scattered = np.exp(2j * np.pi * phase) / np.sqrt(PATHS * (k_factor + 1))
        direct = np.zeros((2, self.antennas, self.prbs), np.complex128)  # two rows: the kernel takes paths in pairs
        direct[0] = np.sqrt(k_factor / (k_factor + 1)) * np.exp(2j * np.pi * direct_phase)[:, None]
        rows = np.concatenate([scattered, direct]) if k_factor else scattered
        turns = np.cos(2 * np.pi * np.append(angle, (direct_angle, 0.0))[: len(rows)])
        columns = rows.reshape(len(rows), -1)
        return Paths(turns / self.wavelength_m, columns.real.copy(), columns.imag.copy())


class ScatteredFading:
    """Gains of all CVs over their paths, with maximal ratio combining."""

    def __init__(self, propagation: Propagation, route: Route, known_m: float = 0.0) -> None:
        """`known_m`: distance that a CV drives at most from a measurement to its slot, for the law that plans use."""
        self._propagation, self._route, self._known_m = propagation, route, known_m
        most = _KEPT_NUMBERS // (PATHS * propagation.antennas * propagation.prbs)
        self._paths = lru_cache(max(2, most))(propagation.paths)

    def gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """Gains at the positions of the CVs in these slots; shape (slots, CVs, pRBs)."""
        gains = np.empty((slots, len(cvs), self._propagation.prbs))
        own, antennas = np.empty((slots, self._propagation.prbs)), self._propagation.antennas
        driven_m = self._route.driven_m(slot, slots, cvs).T.copy()
        sights = self._route.sight(slot, slots, cvs) if self._propagation.depends_on_sight else None
        for column, cv in enumerate(cvs.tolist()):
            if sights is None or not sights[:, column].all():
                combine(driven_m[column], self._paths(cv, sight=False), antennas, own)
                gains[:, column] = own
            if sights is not None and sights[:, column].any():
                combine(driven_m[column], self._paths(cv, sight=True), antennas, own)
                gains[sights[:, column], column] = own[sights[:, column]]
        return gains

    def law(self, *, sight: bool = False) -> GainLaw:
        """Distribution of the gains of a CV, at the distance within reach over which they are correlated least."""
        own = self._propagation
        k_factor = own.k_factor if sight else 0.0
        rms_s = own.profile.scattered_rms_s(k_factor, sight=sight)
        profile = None if rms_s is None else own.profile
        wavelengths = min(self._known_m / own.wavelength_m, _FIRST_ZERO / (2 * np.pi))
        correlation = bessel_j0(2 * np.pi * wavelengths)
        return GainLaw(own.prbs, own.antennas, k_factor, profile, rms_s or 0.0, correlation, wavelengths)


def bessel_j0(x: float) -> float:
    """J₀(x), the correlation of an antenna's gain over a phase of x = 2πΔx/λ."""
    from scipy.special import j0  # slow to import, and not needed to read an experiment

    return float(j0(x))


@kernel
def combine(driven_m, paths, antennas, gains):
    """Fill gains[slot, pRB] = Σ over antennas |Σ over paths a·exp(2πj·x·cos θ/λ)|², where x is `driven_m` of the slot.

    Each slot is computed by itself, so that its gains do not depend on the others. Sines and cosines of the half angle
    are polynomials, exact to 1e-9, which the compiler can compute for several paths at once.
    """
    count, size = paths.real.shape
    prbs = size // antennas
    cosine, sine = np.empty(count), np.empty(count)
    real, imag = np.empty(size), np.empty(size)
    for slot in range(len(driven_m)):
        for m in range(count):
            turns = driven_m[slot] * paths.turns_per_m[m]
            half = np.pi * (turns - np.floor(turns + 0.5))  # within ±π/2
            q = half * half
            s = 1 / 362880 + q * (-1 / 39916800 + q / 6227020800)
            s = half * (1 + q * (-1 / 6 + q * (1 / 120 + q * (-1 / 5040 + q * s))))
            c = 1 / 40320 + q * (-1 / 3628800 + q * (1 / 479001600 - q / 87178291200))
            c = 1 + q * (-0.5 + q * (1 / 24 + q * (-1 / 720 + q * c)))
            cosine[m], sine[m] = 1 - 2 * s * s, 2 * s * c
        for i in range(size):
            real[i], imag[i] = 0.0, 0.0
        for m in range(0, count, 2):
            c0, s0, c1, s1 = cosine[m], sine[m], cosine[m + 1], sine[m + 1]
            for i in range(size):
                r0, i0, r1, i1 = paths.real[m, i], paths.imag[m, i], paths.real[m + 1, i], paths.imag[m + 1, i]
                real[i] += (c0 * r0 - s0 * i0) + (c1 * r1 - s1 * i1)
                imag[i] += (c0 * i0 + s0 * r0) + (c1 * i1 + s1 * r1)
        for prb in range(prbs):
            gains[slot, prb] = 0.0
        for antenna in range(antennas):
            for prb in range(prbs):
                i = antenna * prbs + prb
                gains[slot, prb] += real[i] * real[i] + imag[i] * imag[i]
