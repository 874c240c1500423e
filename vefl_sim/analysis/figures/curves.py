"""Combines the runs of a line into one curve: the mean over seeds, and a band around it."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import samples, scalar, series
from vefl_sim.analysis.figures.request import Band, Request
from vefl_sim.sweep.paired import half_widths

COLUMNS = ("panel", "line", "x", "mean", "std", "seeds", "low", "high")
CCDFS = ("sojourn", "p_suc")
"""Kinds of which a distribution shows the share above x; the others show the share below."""
REFERENCE = "reference"
"""Column of reference values, mostly from the paper."""
_POINTS = 500  # of the x-grid of a distribution
_BANDS: dict[Band, str] = {
    "ci95": " ± half-width of the 95 % interval", "sd": " ± s.d.", "minmax": " [least, largest]", "none": "",
}  # fmt: skip


def curves(groups: Sequence[Group], request: Request) -> pd.DataFrame:
    """One row per panel, line and x: mean and standard deviation (of the sample) over finished seeds, and the band."""
    if request.is_distribution:
        each = _distributions(groups, request)
    elif any(group.x_label for group in groups):
        each = [numbers(group, request).to_frame(group.x).T for group in groups]
    else:
        by_seed = ({seed: series(run, request) for seed, run in group.runs.items()} for group in groups)
        each = [_aligned(own, hold=request.x == "time") for own in by_seed]
    tables = [_rows(place, each, groups, request) for place, own in enumerate(each) if own.size]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COLUMNS))


def numbers(group: Group, request: Request) -> "pd.Series[float]":
    """The number that represents each run, by seed, where it has one."""
    return pd.Series({seed: scalar(run, request.measured) for seed, run in group.runs.items()}, dtype=float).dropna()


def at_marks(rows: pd.DataFrame, request: Request, groups: Sequence[Group]) -> pd.DataFrame:
    """The values of the curves at the marks (or at the last x before), none beyond the end of a curve; and references.

    Against a swept key there are no values between those of the sweep.
    """
    if any(group.x_label for group in groups):
        return _with_references(rows[rows["x"].isin(request.marks)].reset_index(drop=True), request, groups)
    values = [rows.iloc[:0]]
    for _, own in rows.groupby(["panel", "line"], sort=False):
        xs = own["x"].to_numpy(float)
        end = xs[-1] + (xs[-1] - xs[-2] if len(xs) > 1 else 0.0)  # the last value is valid for one more step
        marks = [mark for mark in request.marks if xs[0] <= mark < end or mark == xs[-1]]
        values += [own[xs <= mark].tail(1).assign(x=mark) for mark in marks]
    found = pd.concat(values[1:], ignore_index=True) if len(values) > 1 else values[0]
    return _with_references(found, request, groups)


def line_name(panel: str, line: str) -> str:
    """The printed name of a line, with its panel."""
    return ", ".join(filter(None, [panel, line]))


def _with_references(marks: pd.DataFrame, request: Request, groups: Sequence[Group]) -> pd.DataFrame:
    """Add reference values to the marks, including marks that our curves do not reach."""
    if not request.reference:
        return marks
    lines = list(dict.fromkeys((group.panel_name, group.line) for group in groups))
    rows = [
        (panel, line, mark, value)
        for panel, line in lines
        for mark, value in zip(request.marks, request.reference.get(line_name(panel, line), []), strict=False)
        if not math.isnan(value)
    ]
    both = marks.merge(pd.DataFrame(rows, columns=["panel", "line", "x", REFERENCE]), how="outer")
    places = [lines.index(line) for line in zip(both["panel"], both["line"], strict=True)]
    return both.assign(place=places).sort_values(["place", "x"], ignore_index=True).drop(columns="place")


def with_band(table: pd.DataFrame, band: Band, reference: pd.DataFrame | None = None) -> pd.DataFrame:
    """For each row of a table with one column per seed: `mean`, `std`, and the ends `low` and `high` of the band.

    `reference`: the table of another line; with "ci95", the band is then as wide as the interval of the difference to
    it, paired by seed; if both have the same seeds, the band excludes the mean of the other line where the interval
    excludes 0.
    """
    mean, std = table.mean(axis=1), table.std(axis=1, ddof=1)
    if band == "minmax" and table.shape[1] > 1:
        return pd.DataFrame({"mean": mean, "std": std, "low": table.min(axis=1), "high": table.max(axis=1)})
    half = std if band == "sd" else std * math.nan
    if band == "ci95":
        pairs = table if reference is None else (table - reference).dropna(axis=0, how="all").dropna(axis=1, how="all")
        half = half_widths(pairs).reindex(table.index)
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
    """What is around a mean, for example " ± s.d."; `is_paired`: whether compare_to has an effect."""
    paired = request.compare_to if request.band == "ci95" and is_paired else ""
    return _BANDS[request.band] + (f" of the difference to {paired}" if paired else "")


def at_least(values: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the values that are ≥ x, for each x of the grid."""
    below = np.searchsorted(np.sort(values), grid, side="left")
    return 1 - below / len(values)


def at_most(values: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the values that are ≤ x, for each x of the grid."""
    return np.searchsorted(np.sort(values), grid, side="right") / len(values)


def _distributions(groups: Sequence[Group], request: Request) -> list[pd.DataFrame]:
    """For each group, one column per seed: the CDF of costs, or the CCDF of other kinds, all on the same x-grid."""
    share = at_least if request.kind in CCDFS else at_most
    each = [{seed: own for seed, run in group.runs.items() if len(own := samples(run, request))} for group in groups]
    if not any(each):
        return [pd.DataFrame() for _ in groups]
    grid = _grid(np.concatenate([values for own in each for values in own.values()]), request)
    return [pd.DataFrame({seed: share(values, grid) for seed, values in own.items()}, index=grid) for own in each]


def _grid(values: NDArray[np.float64], request: Request) -> NDArray[np.float64]:
    """The x-grid with the marks: steps of 0.001 for p_suc; or else linear from 0, logarithmic from the 0.1 % quantile.

    Delays are mostly close to the length of a round: linear from the lowest.
    """
    top = float(values.max()) or 1.0
    if request.kind == "p_suc":
        xs = np.arange(1001) / 1000
    elif request.x_scale == "log":
        xs = np.geomspace(max(float(np.quantile(values, 0.001)), 1e-4 * top), top, _POINTS)
    else:
        xs = np.linspace(float(values.min()) if request.kind == "delay" else 0.0, top, _POINTS + 1)
    near = [mark for mark in request.marks if mark <= 2 * top]  # a mark far beyond would compress the curves
    return np.unique(np.concatenate([xs, near]))


def _aligned(each: Mapping[int, pd.Series], hold: bool) -> pd.DataFrame:
    """One column per seed, for all x at which every run has a value; with `hold`, a value is valid until the next."""
    known = {seed: own for seed, own in each.items() if len(own)}  # runs without values hide no other
    if not known:
        return pd.DataFrame()
    table = pd.concat(known, axis=1).sort_index()
    if hold:
        table = table.ffill().loc[: min(own.index[-1] for own in known.values())]
    return table.dropna()


def _rows(place: int, each: Sequence[pd.DataFrame], groups: Sequence[Group], request: Request) -> pd.DataFrame:
    """The rows of one group; `each` has the values of each group by x, one column per seed."""
    group, table = groups[place], each[place]
    band, reference = band_for(group, groups, request)
    compared = next((own for own, other in zip(each, groups, strict=True) if other is reference), None)
    if group.x_label and compared is not None:
        compared = compared.set_axis(table.index[: len(compared)])  # the x of the reference may be another variant
    if request.x == "time" and compared is not None:  # rounds of other lines may end at other times
        times = compared.index.union(table.index)
        compared = compared.reindex(times).ffill().loc[: compared.index[-1]].reindex(table.index)
    rows = with_band(table, band, compared)
    if not request.has_band and not group.x_label:
        rows[["std", "low", "high"]] = np.nan  # zeros and ones have no meaningful standard deviation
    rows = rows.assign(x=table.index, seeds=table.shape[1], panel=group.panel_name, line=group.line)
    return rows.reset_index(drop=True)[list(COLUMNS)]
