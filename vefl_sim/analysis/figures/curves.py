"""Combines the runs of a line into one curve: mean and standard deviation over seeds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import samples, scalar, series
from vefl_sim.analysis.figures.request import Request

COLUMNS = ("panel", "line", "x", "mean", "std", "seeds")
CCDFS = ("sojourn", "p_suc")
"""Kinds of which a distribution shows the share above x; the others show the share below."""
_POINTS = 500  # of the x-grid of a distribution


def curves(groups: Sequence[Group], request: Request) -> pd.DataFrame:
    """One row per panel, line and x: mean and sample standard deviation over the finished seeds."""
    if request.is_distribution:
        each = _distributions(groups, request)
    elif any(group.x_label for group in groups):
        each = [[_at(group.x, scalar(run, request)) for run in group.runs.values()] for group in groups]
    else:
        each = [[series(run, request) for run in group.runs.values()] for group in groups]
    each = [[own for own in runs if len(own)] for runs in each]  # runs without values do not hide the others
    tables = [_rows(group, own, request) for group, own in zip(groups, each, strict=True) if own]
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


def _distributions(groups: Sequence[Group], request: Request) -> list[list[pd.Series]]:
    """For each group, one curve per run: the CDF of costs, or the CCDF of other kinds, all on the same x-grid."""
    share = at_least if request.kind in CCDFS else at_most
    each = [[own for run in group.runs.values() if len(own := samples(run, request))] for group in groups]
    if not any(each):
        return [[] for _ in groups]
    grid = _grid(np.concatenate([values for own in each for values in own]), request)
    return [[pd.Series(share(values, grid), index=grid) for values in own] for own in each]


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


def _rows(group: Group, each: Sequence[pd.Series], request: Request) -> pd.DataFrame:
    """The rows of one line; `each` are the values of its runs by x."""
    table = _aligned(each, hold=request.x == "time")
    zeros_and_ones = request.kind == "failure-rate" and not group.x_label  # have no meaningful standard deviation
    std = np.nan if zeros_and_ones else table.std(axis=1, ddof=1)
    rows: Any = {"x": table.index, "mean": table.mean(axis=1), "std": std, "seeds": len(each)}
    panel = ", ".join(group.panel)
    return pd.DataFrame(rows).assign(panel=panel, line=group.line).reset_index(drop=True)[list(COLUMNS)]


def _aligned(each: Sequence[pd.Series], hold: bool) -> pd.DataFrame:
    """One column per run, for all x at which every run has a value; with `hold`, a value is valid until the next."""
    table = pd.concat(each, axis=1).sort_index()
    if hold:
        end = min(own.index[-1] for own in each if len(own)) if any(map(len, each)) else 0.0
        table = table.ffill().loc[:end]
    return table.dropna()
