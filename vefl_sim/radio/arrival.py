"""What plans may count on where the gNB's knowledge is old: grants above the capacity of their slot are lost.

The MAC grants all that a CV's pRBs could carry when they were measured, less a margin. It prefers pRBs that were
measured as good, and in most cases these have become worse; so the worst pRB is not the worst case. Plans count on the
least mean rate that arrives among several grants:

- the worst pRB;
- the 1, 2, 3, 5, … or Z pRBs that were measured best, with equal powers;
- where powers are optimized: all pRBs, with the powers that are best for the measured channel;
- where powers are given (open loop): the pRBs of one of Z CVs that share a slot, where each pRB belongs to the CV that
  was measured best on it; or, if a CV needs all its power for one pRB, as many of its best pRBs as give the largest
  rate.
"""

from functools import cache, lru_cache

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.radio.worst_prb import GainLaw

_STEP_DB = 2.0  # between two SNRs for which draws are evaluated; in between, the share is interpolated
_RANGE_DB = 80.0  # SNRs beyond ±80 dB are treated as ±80 dB; above, this underestimates the share, which is safe


def arriving_share(law: GainLaw, margin: float, snr: Floats, full_prbs: Floats | None = None) -> Floats:
    """The rate to count on, as a share of the mean rate of the worst pRB in its slot.

    `margin`: factor on what was measured; `snr`: of one antenna, without fading, with the power that a CV uses on a
    single pRB; `full_prbs`: where powers are given, P_max/p, the number of pRBs on which a CV can send with this power.
    """
    if full_prbs is None:
        return _interpolated(law, margin, snr, None)
    octave = np.log2(np.clip(full_prbs, 1, law.prbs))
    fewer, more = (_of_octaves(law, margin, snr, edge.astype(int)) for edge in (np.floor(octave), np.ceil(octave)))
    between: Floats = fewer + (more - fewer) * (octave - np.floor(octave))
    return between


def _of_octaves(law: GainLaw, margin: float, snr: Floats, octaves: Ints) -> Floats:
    """The shares of CVs that can send on 2^octave pRBs with the given power."""
    shares = np.empty(len(snr))
    for octave in np.unique(octaves):
        shares[octaves == octave] = _interpolated(law, margin, snr[octaves == octave], 2 ** int(octave))
    return shares


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
    measured, now = _ranked(law)
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
def _drawn(law: GainLaw) -> tuple[Floats, Floats]:
    """Draws of the gains when they were measured and in the slot; rows are independent, pRBs in their own order."""
    return law.draw()


@lru_cache(maxsize=2)
def _ranked(law: GainLaw) -> tuple[Floats, Floats]:
    """The same draws; each row from the pRB measured best to the worst."""
    measured, now = _drawn(law)
    order = np.argsort(-measured, axis=1, kind="stable")
    return np.take_along_axis(measured, order, 1), np.take_along_axis(now, order, 1)


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
    slots = len(_drawn(law)[0]) // prbs
    measured, now = (gains[: slots * prbs].reshape(slots, prbs, prbs) for gains in _drawn(law))  # slot, CV, pRB
    owned = measured.argmax(axis=1)[:, None, :] == np.arange(prbs)[:, None]
    power = np.minimum(1.0, full_prbs / np.maximum(owned.sum(axis=2, keepdims=True), 1)) * owned
    return _arriving((measured * margin * power).reshape(-1, prbs), (now * power).reshape(-1, prbs), snr)


def prb_counts(prbs: int) -> list[int]:
    """The numbers of pRBs that are tried: 1, 2, 3, 5, 8, … and all."""
    counts = [1, 2]
    while counts[-1] < prbs:
        counts.append(counts[-2] + counts[-1])
    return [count for count in counts if count < prbs] + [prbs]
