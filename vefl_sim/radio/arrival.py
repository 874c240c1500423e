"""What plans may count on where the gNB's knowledge is old: grants above the capacity of their slot are lost.

The MAC grants all that a CV's pRBs could carry when they were measured, less a margin. It prefers pRBs that were
measured as good, and in most cases these have become worse; so the worst pRB is not the worst case. Plans count on the
least mean rate that arrives among several grants: the worst pRB; the 1, 2, 3, 5, … or Z pRBs that were measured best,
with equal powers; and where powers are optimized, all pRBs with the powers that are best for the measured channel.
"""

from functools import cache, lru_cache

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.radio.worst_prb import GainLaw

_STEP_DB = 2.0  # between two SNRs for which draws are evaluated; in between, the share is interpolated
_RANGE_DB = 80.0  # beyond ±80 dB the share hardly changes


def arriving_share(law: GainLaw, margin: float, snr: Floats, full_prbs: Floats | None = None) -> Floats:
    """The rate to count on, as a share of the mean rate of the worst pRB in its slot.

    `margin`: factor on what was measured; `snr`: of one antenna, without fading, with all power of a CV that has one
    pRB; `full_prbs`: where powers are given, the number of pRBs on which a CV can send with this power (P_max/p).
    """
    if full_prbs is None:
        return _interpolated(law, margin, snr, None)
    shares, rounded = np.empty(len(snr)), 2 ** np.floor(np.log2(np.clip(full_prbs, 1, law.prbs)))
    for full in np.unique(rounded):
        shares[rounded == full] = _interpolated(law, margin, snr[rounded == full], int(full))
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
    rates = [_arriving(measured[:, -1:] * margin, now[:, -1:], snr)]
    for count in prb_counts(law.prbs):
        prb_snr = snr * min(1.0, (full_prbs or 1) / count)
        # With given powers a CV may be granted `count` pRBs at once in one of `count` slots: its share is that of one.
        slots = min(count, full_prbs or 1)
        rates.append(_arriving(measured[:, :count] * margin, now[:, :count], prb_snr) / slots)
    if full_prbs is None:
        rates.append(_arriving_of_all(measured * margin, now, snr))
    return min(rates) / float(np.log1p(snr * measured[:, -1]).mean())


@lru_cache(maxsize=4)
def _ranked(law: GainLaw) -> tuple[Floats, Floats]:
    """Draws of the gains when they were measured and in the slot; each row from the pRB measured best to the worst."""
    measured, now = law.draw()
    order = np.argsort(-measured, axis=1, kind="stable")
    return np.take_along_axis(measured, order, 1), np.take_along_axis(now, order, 1)


def _arriving(granted: Floats, now: Floats, snr: Floats | float) -> float:
    """Mean rate in nats that arrives if rates are granted for these gains: all of a grant, or nothing."""
    rate, capacity = (np.log1p(snr * gains).sum(axis=1) for gains in (granted, now))
    return float((rate * (rate <= capacity)).mean())


def _arriving_of_all(granted: Floats, now: Floats, snr: float) -> float:
    """The same for all pRBs, with the power split between them by water-filling; the best pRBs come first."""
    inverse = 1 / np.maximum(granted * snr, 1e-300)
    level = (1 + np.cumsum(inverse, axis=1)) / np.arange(1, granted.shape[1] + 1)  # if so many pRBs are used
    used = (level > inverse).sum(axis=1) - 1  # the last pRB that is used: levels exceed 1/g up to there
    power = np.maximum(np.take_along_axis(level, used[:, None], 1) - inverse, 0.0)
    return _arriving(granted, now, snr * power)


def prb_counts(prbs: int) -> list[int]:
    """The numbers of pRBs that are tried: 1, 2, 3, 5, 8, … and all."""
    counts = [1, 2]
    while counts[-1] < prbs:
        counts.append(counts[-2] + counts[-1])
    return [count for count in counts if count < prbs] + [prbs]
