"""Means over seeds and paired differences, with Student's 95 % confidence intervals.

All functions take a table with one row per (variant, seed) and one column per figure. Variants with the same seed share
traffic, channels, data and initial model, so the effect that a seed has on both cancels in their difference.
"""

import math
from typing import Any

import pandas as pd
from scipy import stats

CONFIDENCE = 0.95
_DIFFERENCES = ("variant", "reference", "figure", "pairs", "difference", "half_width", "differs")


def half_width(values: pd.Series) -> float:
    """Half the width of the confidence interval of the mean of these values; NaN for fewer than two values.

    t_{n−1, 0.975}·s/√n, with the standard deviation s of the sample. Missing values are left out.
    """
    present = values.dropna()
    if len(present) < 2:
        return math.nan
    return critical_t(len(present)) * float(present.std(ddof=1)) / math.sqrt(len(present))


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
    return pd.DataFrame(rows, columns=list(_DIFFERENCES))


def difference(variant: pd.Series, reference: pd.Series) -> dict[str, Any]:
    """The mean difference of two figures that are given by seed; the columns are those of `differences`."""
    pairs = (variant - reference).dropna()  # matched by seed
    mean, half = float(pairs.mean()), half_width(pairs)
    return {"pairs": len(pairs), "difference": mean, "half_width": half, "differs": abs(mean) > half}


def critical_t(pairs: int) -> float:
    """The t value of the confidence interval of the mean of so many pairs."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, pairs - 1))
