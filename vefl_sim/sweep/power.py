"""How many seeds a comparison needs to find a difference.

It follows from the standard deviation of the paired differences: with so many seeds, the paired t test at the level of
5 % finds the difference in 80 % of all experiments.
"""

import math

import numpy as np
import pandas as pd
from scipy import optimize, special, stats

from vefl_sim.sweep.paired import critical_t

POWER = 0.8
_MAX_SEEDS = 10_000
_QUANTILES = (np.arange(2000) + 0.5) / 2000


def seeds_sentence(differences: pd.DataFrame, name: str, detect: float | None = None, *, settable: bool = True) -> str:
    """How many seeds are needed to find a difference, from rows of `paired.differences`; empty if one was found.

    The row with the largest spread counts, with its own number of seeds. `name`: of the figure; `detect`: the
    difference, if one was chosen; `settable`: whether one can be.
    """
    known = differences[differences["pairs"] > 1]
    if not len(known) or known["differs"].any():
        return ""
    spreads = [(deviation(row["half_width"], int(row["pairs"])), int(row["pairs"])) for _, row in known.iterrows()]
    spread, seeds = max(spreads)
    if spread == 0:
        return ""
    test = "paired t test, 80 % power, 5 % level"  # the power is the share of experiments
    if detect:
        return f"No difference in {name} was found. To find one of {detect:g}, {_count(detect, spread)} ({test})."
    found = detectable(spread, seeds)
    hint = " For another difference, set figure.detect." if settable else ""
    return (
        f"No difference in {name} was found. With {seeds} seeds, one of {found:.2g} is found in 80 % of experiments; "
        f"for half of it, {_count(found / 2, spread)} ({test}).{hint}"
    )


def deviation(half_width: float, pairs: int) -> float:
    """The standard deviation of the differences of so many pairs, from the half-width of their interval."""
    return half_width * math.sqrt(pairs) / critical_t(pairs)


def power(effect: float, seeds: int) -> float:
    """Probability that a paired t test finds a difference of `effect` standard deviations of the paired differences.

    The t value is (Z + effect·√n)/S with a normal Z and the sample's deviation S, of which the quantiles are taken.
    (`scipy.stats.nct` is the same, but gives NaN for few seeds and large effects.)
    """
    freedom, shift = seeds - 1, abs(effect) * math.sqrt(seeds)
    limits = critical_t(seeds) * stats.chi.ppf(_QUANTILES, freedom) / math.sqrt(freedom)
    return float((special.ndtr(shift - limits) + special.ndtr(-shift - limits)).mean())


def seeds_needed(difference: float, deviation: float) -> int | None:
    """The smallest number of seeds with which a difference is found; None if more than 10,000 are needed."""
    if deviation == 0:
        return 2
    effect, low, high = difference / deviation, 1, 2
    while power(effect, high) < POWER:
        if high == _MAX_SEEDS:
            return None
        low, high = high, min(2 * high, _MAX_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(effect, middle) >= POWER else (middle, high)
    return high


def detectable(deviation: float, seeds: int) -> float:
    """The smallest difference that is found with so many seeds."""
    return deviation * float(optimize.brentq(lambda effect: power(effect, seeds) - POWER, 0.0, 1000.0))


def _count(difference: float, spread: float) -> str:
    needed = seeds_needed(difference, spread)
    return f"{needed} seeds are needed" if needed else f"more than {_MAX_SEEDS} seeds are needed"
