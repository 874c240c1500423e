"""Means over seeds and paired differences, with Student's 95 % confidence intervals; how many seeds find a difference.

Tables have one row per (variant, seed) and one column per figure. Variants with the same seed share traffic, channels,
data and initial model, so the effect that a seed has on both cancels in their difference.
"""

import math
from bisect import bisect_left
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, special, stats

CONFIDENCE = 0.95
POWER = 0.8
_MAX_SEEDS = 10_000
_QUANTILES = (np.arange(2000) + 0.5) / 2000


def half_width(values: pd.Series) -> float:
    """Half the width of the confidence interval of the mean of these values; NaN for fewer than two values.

    t_{n−1, 0.975}·s/√n, with the standard deviation s of the sample. Missing values are left out.
    """
    return float(half_widths(values.dropna().to_frame().T).iloc[0])


def half_widths(table: pd.DataFrame) -> "pd.Series[float]":
    """The half-width of each row, whose columns are seeds; NaN for fewer than two seeds."""
    count = table.shape[1]
    return table.std(axis=1, ddof=1) * (critical_t(count) / math.sqrt(count) if count > 1 else math.nan)


def means(figures: pd.DataFrame) -> pd.DataFrame:
    """One row per variant, in the order of the table: the mean of each figure, then the half-width of each figure."""
    groups = figures.groupby(level="variant", sort=False)
    return groups.mean().join(groups.agg(half_width).add_suffix("_half_width"))


def differences(figures: pd.DataFrame) -> pd.DataFrame:
    """One row per figure and variant except the first: the difference from the first variant, paired by seed.

    `pairs`: seeds with both values; `difference`: their mean; `half_width`; `differs`: the interval excludes 0.
    """
    labels = figures.index.unique("variant")
    reference = figures.loc[labels[0]]
    rows = [
        {"variant": label, "reference": labels[0], "figure": name}
        | difference(figures.loc[label][name], reference[name])
        for label in labels[1:]
        for name in figures.columns
    ]
    columns = ["variant", "reference", "figure", "pairs", "difference", "half_width", "differs"]
    return pd.DataFrame(rows, columns=columns)


def difference(variant: pd.Series, reference: pd.Series) -> dict[str, Any]:
    """The mean difference of two figures that are given by seed; the columns are those of `differences`."""
    pairs = (variant - reference).dropna()  # matched by seed
    mean, half = float(pairs.mean()), half_width(pairs)
    return {"pairs": len(pairs), "difference": mean, "half_width": half, "differs": abs(mean) > half}


def critical_t(pairs: int) -> float:
    """The t value of the confidence interval of the mean of so many pairs."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, pairs - 1))


def seeds_sentence(differences: pd.DataFrame, name: str, detect: float | None = None, *, settable: bool = True) -> str:
    """How many seeds are needed to find a difference, from rows of `differences`; empty if one was found.

    The row with the largest spread counts, with its own number of seeds. `name`: of the figure; `detect`: the
    difference, if one was chosen; `settable`: whether one can be.
    """
    known = differences[differences["pairs"] > 1]
    if not len(known) or known["differs"].any():
        return ""
    # the standard deviation of the differences, from the half-width of their interval
    pairs = known["pairs"].astype(int)
    spread, seeds = max(zip(known["half_width"] * pairs**0.5 / pairs.map(critical_t), pairs, strict=True))
    if spread == 0:
        return ""
    found = detect or detectable(spread, seeds)
    needed = seeds_needed(found if detect else found / 2, spread)
    count = f"{needed} seeds are needed" if needed else f"more than {_MAX_SEEDS} seeds are needed"
    count += " (paired t test, 80 % power, 5 % level)"  # the power is the share of experiments
    if detect:
        return f"No difference in {name} was found. To find one of {detect:g}, {count}."
    hint = " For another difference, set figure.detect." if settable else ""
    return (
        f"No difference in {name} was found. With {seeds} seeds, one of {found:.2g} is found in 80 % of experiments; "
        f"for half of it, {count}.{hint}"
    )


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
    counts = range(2, _MAX_SEEDS + 1)
    place = bisect_left(counts, POWER, key=lambda seeds: power(difference / deviation, seeds))
    return counts[place] if place < len(counts) else None


def detectable(deviation: float, seeds: int) -> float:
    """The smallest difference that is found with so many seeds."""
    return deviation * float(optimize.brentq(lambda effect: power(effect, seeds) - POWER, 0.0, 1000.0))
