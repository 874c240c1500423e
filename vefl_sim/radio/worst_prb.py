"""The worst pRB of a CV: the distribution of its gain, from which plans compute the rate that they count on.

A law says how the gains of a CV's pRBs are distributed. Where pRBs are independent, the distribution of the worst is a
formula; else it is estimated from draws that are the same in every run.

Where the gNB's knowledge is old, grants above the capacity of their slot are lost (`arriving_share`). The MAC grants
all that a CV's pRBs could carry when they were measured, less a margin. It prefers pRBs that were measured as good, and
in most cases these have become worse; so the worst pRB is not the worst case. Plans count on the least mean rate that
arrives among several grants:

- the worst pRB;
- the 1, 2, 3, 5, … or Z pRBs that were measured best, with equal powers;
- where powers are optimized: all pRBs, with the powers that are best for the measured channel;
- where powers are given (open loop): the pRBs of one of Z CVs that share a slot, where each pRB belongs to the CV that
  was measured best on it; or, if a CV needs all its power for one pRB, as many of its best pRBs as give the largest
  rate.
"""

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.radio.delay_profile import Complex, DelayProfile

NODES = 64  # of a distribution: mean rates are exact to 2e-5 relative at N = 4, 2e-4 at N = 1
_DRAWS = 16_384  # standard error of a mean rate: 1 %, with one antenna 2 %; of the share that arrives: 3 % at Z = 10
_NUMBERS = 3_000_000  # drawn in all: fewer draws if pRBs and antennas are many
_AT_ONCE = 500_000
_STEP_DB = 2.0  # between two SNRs for which draws are evaluated; in between, the share is interpolated
_RANGE_DB = 80.0  # SNRs beyond ±80 dB are treated as ±80 dB; above, this underestimates the share, which is safe


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
    """Quantiles of the gain of the worst pRB, and their probabilities.

    Of Z independent gains P(least > x) = P(gain > x)^Z, at Gauss-Legendre nodes. Without a direct path a gain is
    Gamma(N, 1); with it, 2(K + 1) times the gain is noncentral χ² with 2N degrees of freedom and the parameter 2NK.
    """
    from scipy.special import chndtrix, gammainccinv  # slow to import, and not needed to read an experiment

    if np.isinf(law.k_factor):
        return np.full(1, float(law.antennas)), np.ones(1)
    if law.independent is None:
        least = np.sort(law.draw()[0].min(axis=1))
        return least.reshape(NODES, -1).mean(axis=1), np.full(NODES, 1 / NODES)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    above = ((nodes + 1) / 2) ** (1 / law.independent)
    if not law.k_factor:
        return gammainccinv(law.antennas, above), weights / 2
    gain = chndtrix(1 - above, 2 * law.antennas, 2 * law.antennas * law.k_factor) / (2 * (law.k_factor + 1))
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


def arriving_share(law: GainLaw, margin: float, snr: Floats, full_prbs: Floats | None = None) -> Floats:
    """The rate to count on, as a share of the mean rate of the worst pRB in its slot.

    `margin`: factor on what was measured; `snr`: of one antenna, without fading, with the power that a CV uses on a
    single pRB; `full_prbs`: where powers are given, P_max/p, the number of pRBs on which a CV can send with this power.
    """
    if full_prbs is None:
        return _interpolated(law, margin, snr, None)
    octave = np.log2(np.clip(full_prbs, 1, law.prbs))
    edges = np.stack([np.floor(octave), np.ceil(octave)])
    shares = np.empty(edges.shape)
    for row, number in product((0, 1), np.unique(edges)):
        same = edges[row] == number
        shares[row, same] = _interpolated(law, margin, snr[same], 2 ** int(number))
    between: Floats = shares[0] + (shares[1] - shares[0]) * (octave - edges[0])
    return between


def _interpolated(law: GainLaw, margin: float, snr: Floats, full_prbs: int | None) -> Floats:
    """The shares of CVs for which the number of pRBs with full power is the same."""
    with np.errstate(divide="ignore"):  # a channel without any gain
        steps = np.clip(10 * np.log10(snr), -_RANGE_DB, _RANGE_DB) / _STEP_DB
    nodes = np.unique([np.floor(steps), np.ceil(steps)])
    if not len(nodes):
        return np.empty(0)
    shares = [_share(law, margin, float(10 ** (node * _STEP_DB / 10)), full_prbs) for node in nodes]
    interpolated: Floats = np.interp(steps, nodes, shares)
    return interpolated


@cache
def _share(law: GainLaw, margin: float, snr: float, full_prbs: int | None) -> float:
    """The share at one SNR, from draws that are the same in every run."""
    _, (measured, now) = _draws_of(law)  # best measured pRBs first
    granted = measured * margin
    rates = [_arriving(granted[:, -1:], now[:, -1:], snr)]
    for count in prb_counts(law.prbs):
        prb_snr = snr * min(1.0, (full_prbs or 1) / count)
        # On n pRBs a CV sends with min(n, P_max/p) times the power that it uses on one: compare rates per power.
        rates.append(_arriving(granted[:, :count], now[:, :count], prb_snr) / min(count, full_prbs or 1))
    if full_prbs is None:
        rates.append(_arriving(granted, now, snr * water_filling(granted * snr)))
    elif full_prbs == 1:
        rates.append(_arriving(granted, now, snr * _best_number(granted * snr)))
    elif not law.is_known:
        rates.append(_arriving_if_shared(law, margin, snr, full_prbs))
    return min(rates) / float(np.log1p(snr * measured[:, -1]).mean())


@lru_cache(maxsize=2)
def _draws_of(law: GainLaw) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Draws of the gains when measured and in the slot, in independent rows: as drawn, and the best measured first."""
    measured, now = law.draw()
    order = np.argsort(-measured, axis=1, kind="stable")
    return (measured, now), (np.take_along_axis(measured, order, 1), np.take_along_axis(now, order, 1))


def _arriving(granted: Floats, now: Floats, snr: Floats | float) -> float:
    """Mean rate in nats that arrives if rates are granted for these gains: all of a grant, or nothing."""
    rate, capacity = (np.log1p(snr * gains).sum(axis=1) for gains in (granted, now))
    return float((rate * (rate <= capacity)).mean())


def water_filling(snr: Floats) -> Floats:
    """Shares of a CV's power with which its rate is largest; `snr` with all power on one pRB, the best pRBs first.

    Levels are measured from 1/SNR of the best pRB, so that they are exact also at a very low SNR.
    """
    inverse = 1 / np.maximum(snr, 1e-300)
    above = inverse - inverse[:, :1]
    level = (1 + np.cumsum(above, axis=1)) / np.arange(1, snr.shape[1] + 1)  # if so many pRBs are used
    used = (level > above).sum(axis=1) - 1  # the last pRB that is used: levels exceed 1/SNR up to there
    return np.maximum(np.take_along_axis(level, used[:, None], 1) - above, 0.0)


def _best_number(snr: Floats) -> Floats:
    """Equal shares of a CV's power on as many of its best pRBs as give the largest rate; arguments as above."""
    prbs = snr.shape[1]
    power = 1 / np.arange(1, prbs + 1)  # if so many pRBs are used
    rates = [np.log1p(power[last] * snr[:, : last + 1]).sum(axis=1) for last in range(prbs)]
    best = np.argmax(rates, axis=0)[:, None]
    return np.where(np.arange(prbs) <= best, power[best], 0.0)


def _arriving_if_shared(law: GainLaw, margin: float, snr: float, full_prbs: int) -> float:
    """Mean rate of one of Z CVs that share a slot with given powers: a pRB belongs to the CV measured best on it."""
    prbs = law.prbs
    drawn, _ = _draws_of(law)
    slots = len(drawn[0]) // prbs
    measured, now = (gains[: slots * prbs].reshape(slots, prbs, prbs) for gains in drawn)  # slot, CV, pRB
    owned = measured.argmax(axis=1)[:, None, :] == np.arange(prbs)[:, None]
    power = np.minimum(1.0, full_prbs / np.maximum(owned.sum(axis=2, keepdims=True), 1)) * owned
    return _arriving((measured * margin * power).reshape(-1, prbs), (now * power).reshape(-1, prbs), snr)


def prb_counts(prbs: int) -> list[int]:
    """The numbers of pRBs that are tried: 1, 2, 3, 5, 8, … and all."""
    counts = [1, 2]
    while counts[-1] < prbs:
        counts.append(counts[-2] + counts[-1])
    return [count for count in counts if count < prbs] + [prbs]
