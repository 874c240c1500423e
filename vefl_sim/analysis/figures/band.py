"""What is shown around a mean over seeds: a confidence interval, the standard deviation, or the extremes."""

import math
from collections.abc import Sequence

import pandas as pd

from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.request import Band, Request
from vefl_sim.sweep.paired import half_widths

_WORDS: dict[Band, str] = {
    "ci95": "half-width of the 95 % confidence interval",
    "sd": "s.d.",
    "minmax": "[least, largest]",
    "none": "",
}
_SHORT: dict[Band, str] = {"ci95": "95 % interval", "sd": "± s.d.", "minmax": "least to largest", "none": ""}


def with_band(table: pd.DataFrame, band: Band, reference: pd.DataFrame | None = None) -> pd.DataFrame:
    """For each row of a table with one column per seed: `mean`, `std`, and the ends `low` and `high` of the band.

    `reference`: the table of another line; with "ci95", the band is then as wide as the interval of the difference to
    it, paired by seed; if both have the same seeds, the band excludes the mean of the other line where the interval
    excludes 0.
    """
    mean, std = table.mean(axis=1), table.std(axis=1, ddof=1)
    several = table.shape[1] > 1
    if band == "minmax" and several:
        return pd.DataFrame({"mean": mean, "std": std, "low": table.min(axis=1), "high": table.max(axis=1)})
    if band == "ci95":
        pairs = table if reference is None else (table - reference).dropna(axis=0, how="all").dropna(axis=1, how="all")
        half = half_widths(pairs).reindex(table.index)
    else:
        half = std if band == "sd" else std * math.nan
    return pd.DataFrame({"mean": mean, "std": std, "low": mean - half, "high": mean + half})


def reference_of(group: Group, groups: Sequence[Group], name: str) -> Group | None:
    """The group that figure.compare_to names for this one: of the same panel and x; None if there is none."""
    own = [other for other in groups if other.panel == group.panel]
    return next((other for other in own if (other.line == name and other.x == group.x) or other.title == name), None)


def band_for(group: Group, groups: Sequence[Group], request: Request) -> tuple[Band, Group | None]:
    """The band of a group, and the group that it is compared to; a group that others are compared to has none."""
    if request.band != "ci95" or not request.compare_to:
        return request.band, None
    reference = reference_of(group, groups, request.compare_to)
    return ("none", None) if reference is None or reference is group else ("ci95", reference)


def band_text(row: pd.Series, band: Band, digits: int, plus_minus: str = "±") -> str:
    """The band of a row of `with_band` in words, for example ±0.0123; empty if there is none."""
    if math.isnan(row["low"]):
        return ""
    if band == "minmax":
        return f"[{row['low']:.{digits}f}, {row['high']:.{digits}f}]"
    return f"{plus_minus}{row['high'] - row['mean']:.{digits}f}"


def band_words(request: Request, *, is_paired: bool = True) -> str:
    """What the numbers of a table mean, for example "mean ± s.d."; `is_paired`: whether compare_to has an effect."""
    sign = " " if request.band == "minmax" else " ± "
    return "mean" + (sign + _WORDS[request.band] + _paired(request) * is_paired if _WORDS[request.band] else "")


def band_note(request: Request) -> str:
    """What the band of a figure is, if the request chose it; empty otherwise."""
    if "band" not in request.model_fields_set or not _SHORT[request.band]:
        return ""
    return _SHORT[request.band] + _paired(request)


def _paired(request: Request) -> str:
    return f" of the difference to {request.compare_to}" if request.band == "ci95" and request.compare_to else ""
