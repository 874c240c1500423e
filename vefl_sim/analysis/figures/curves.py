"""Combines the runs of a line into one curve: the mean over seeds, and a band around it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vefl_sim.analysis.figures.band import band_for, with_band
from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import samples, scalar, series
from vefl_sim.analysis.figures.request import Request

COLUMNS = ("panel", "line", "x", "mean", "std", "seeds", "low", "high")
CCDFS = ("sojourn", "p_suc")
"""Kinds of which a distribution shows the share above x; the others show the share below."""
_POINTS = 500  # of the x-grid of a distribution


def curves(groups: Sequence[Group], request: Request) -> pd.DataFrame:
    """One row per panel, line and x: mean and standard deviation (of the sample) over finished seeds, and the band."""
    if request.is_distribution:
        each = _distributions(groups, request)
    elif any(group.x_label for group in groups):
        each = [{seed: _at(group.x, scalar(run, request)) for seed, run in group.runs.items()} for group in groups]
    else:
        each = [{seed: series(run, request) for seed, run in group.runs.items()} for group in groups]
    known = [
        {seed: own for seed, own in runs.items() if len(own)} for runs in each
    ]  # runs without values hide no other
    aligned = [_aligned(own, hold=request.x == "time") if own else pd.DataFrame() for own in known]
    tables = [_rows(place, aligned, groups, request) for place, own in enumerate(known) if own]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COLUMNS))


def at_marks(rows: pd.DataFrame, marks: Sequence[float], *, against_key: bool = False) -> pd.DataFrame:
    """The values of the curves at the marks (or at the last x before); none beyond the end of a curve.

    Against a swept key there are no values between those of the sweep.
    """
    if against_key or not marks:
        return rows[rows["x"].isin(marks)].reset_index(drop=True)
    values = []
    for _, own in rows.groupby(["panel", "line"], sort=False):
        xs = own["x"].to_numpy(float)
        step = xs[-1] - xs[-2] if len(xs) > 1 else 0.0  # the last value is valid for one more step
        for mark in marks:
            if xs[0] <= mark <= xs[-1] or xs[-1] < mark < xs[-1] + step:
                values.append(own[xs <= mark].tail(1).assign(x=mark))
    return pd.concat(values, ignore_index=True) if values else rows.iloc[:0]


def at_least(values: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the values that are ≥ x, for each x of the grid."""
    below = np.searchsorted(np.sort(values), grid, side="left")
    return 1 - below / len(values)


def at_most(values: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the values that are ≤ x, for each x of the grid."""
    return np.searchsorted(np.sort(values), grid, side="right") / len(values)


def _at(x: Any, value: float) -> pd.Series:
    """One value at x; empty if it is NaN."""
    return pd.Series([value], index=[x]).dropna()


def _distributions(groups: Sequence[Group], request: Request) -> list[dict[int, pd.Series]]:
    """For each group, one curve per seed: the CDF of costs, or the CCDF of other kinds, all on the same x-grid."""
    share = at_least if request.kind in CCDFS else at_most
    each = [{seed: own for seed, run in group.runs.items() if len(own := samples(run, request))} for group in groups]
    if not any(each):
        return [{} for _ in groups]
    grid = _grid(np.concatenate([values for own in each for values in own.values()]), request)
    return [{seed: pd.Series(share(values, grid), index=grid) for seed, values in own.items()} for own in each]


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


def _rows(place: int, aligned: Sequence[pd.DataFrame], groups: Sequence[Group], request: Request) -> pd.DataFrame:
    """The rows of one group; `aligned` has the values of each group by x, one column per seed."""
    group, table = groups[place], aligned[place]
    band, reference = band_for(group, groups, request)
    compared = next((own for own, other in zip(aligned, groups, strict=True) if other is reference), None)
    if group.x_label and compared is not None:
        compared = compared.set_axis(table.index[: len(compared)])  # the x of the reference may be another variant
    if request.x == "time" and compared is not None:  # rounds of other lines may end at other times
        times = compared.index.union(table.index)
        compared = compared.reindex(times).ffill().loc[: compared.index[-1]].reindex(table.index)
    rows = with_band(table, band, compared)
    if not request.has_band and not group.x_label:
        rows[["std", "low", "high"]] = np.nan  # zeros and ones have no meaningful standard deviation
    rows = rows.assign(x=table.index, seeds=table.shape[1], panel=", ".join(group.panel), line=group.line)
    return rows.reset_index(drop=True)[list(COLUMNS)]


def _aligned(each: Mapping[int, pd.Series], hold: bool) -> pd.DataFrame:
    """One column per seed, for all x at which every run has a value; with `hold`, a value is valid until the next."""
    table = pd.concat(each, axis=1).sort_index()
    if hold:
        table = table.ffill().loc[: min(own.index[-1] for own in each.values())]
    return table.dropna()
