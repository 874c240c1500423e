"""Means over seeds and paired differences, with Student's 95 % confidence intervals.

All functions take figures with one row per (variant, seed) and one column per figure. Variants of one seed share
traffic, channels, data and first model, so what a seed adds to both of them falls out of their difference.
"""

import math

import pandas as pd
from scipy import stats

CONFIDENCE = 0.95
_DIFFERENCES = ("variant", "reference", "figure", "pairs", "difference", "half_width", "differs")


def half_width(values: pd.Series) -> float:
    """Half of the confidence interval of the mean of these values; NaN for fewer than two.

    t_{n−1, 0.975}·s/√n, with the standard deviation s of the sample. Missing values do not count.
    """
    known = values.dropna()
    if len(known) < 2:
        return math.nan
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, len(known) - 1) * known.std(ddof=1) / math.sqrt(len(known)))


def means(figures: pd.DataFrame) -> pd.DataFrame:
    """One row per variant, in their order: the mean of each figure, then each figure's half-width."""
    groups = figures.groupby(level="variant", sort=False)
    return groups.mean().join(groups.agg(half_width).add_suffix("_half_width"))


def differences(figures: pd.DataFrame) -> pd.DataFrame:
    """One row per variant but the first, and figure: its difference to the first variant, seed by seed.

    `pairs`: seeds with both values; `difference`: the mean; `half_width`; `differs`: the interval excludes 0.
    """
    labels = figures.index.unique("variant")
    reference = figures.loc[labels[0]]
    rows = [
        {"variant": label, "reference": labels[0], "figure": name}
        | _difference(figures.loc[label][name], reference[name])
        for label in labels[1:]
        for name in figures.columns
    ]
    return pd.DataFrame(rows, columns=list(_DIFFERENCES))


def _difference(ours: pd.Series, theirs: pd.Series) -> dict[str, float]:
    pairs = (ours - theirs).dropna()  # by seed
    mean, half = float(pairs.mean()), half_width(pairs)
    return {"pairs": len(pairs), "difference": mean, "half_width": half, "differs": abs(mean) > half}
