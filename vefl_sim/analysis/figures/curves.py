"""From the runs of a line to one curve: mean and standard deviation over seeds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import samples, scalar, series
from vefl_sim.analysis.figures.request import Request

COLUMNS = ("panel", "line", "x", "mean", "std", "seeds")
DISTRIBUTIONS = ("sojourn", "p_suc", "cost")
_POINTS = 500


def curves(groups: Sequence[Group], request: Request) -> pd.DataFrame:
    """One row per panel, line and x: mean and standard deviation (of the sample) over the seeds that are done."""
    if request.kind in DISTRIBUTIONS:
        each = _distributions(groups, request)
    elif any(group.bar for group in groups):
        each = [[pd.Series([scalar(run, request)], index=[group.x]) for run in group.runs.values()] for group in groups]
    else:
        each = [[series(run, request) for run in group.runs.values()] for group in groups]
    found = [_rows(group, own, request) for group, own in zip(groups, each, strict=True) if own]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=list(COLUMNS))


def at_marks(rows: pd.DataFrame, marks: Sequence[float]) -> pd.DataFrame:
    """The values where the user wants to know them, or just before; none beyond the end of a curve."""
    if not marks or pd.to_numeric(rows["x"], errors="coerce").isna().any():
        return rows.iloc[:0]  # there is no between for bars
    found = []
    for _, own in rows.groupby(["panel", "line"], sort=False):
        xs = own["x"].to_numpy(float)
        ahead = xs[-1] - xs[-2] if len(xs) > 1 else 0.0  # a value holds until the next one would be there
        for mark in marks:
            if xs[0] <= mark <= xs[-1] or xs[-1] < mark < xs[-1] + ahead:
                found.append(own[xs <= mark].tail(1).assign(x=mark))
    return pd.concat(found, ignore_index=True) if found else rows.iloc[:0]


def at_least(values: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the values ≥ x, for each x of the grid."""
    below = np.searchsorted(np.sort(values), grid, side="left")
    return 1 - below / len(values)


def at_most(values: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the values ≤ x, for each x of the grid."""
    return np.searchsorted(np.sort(values), grid, side="right") / len(values)


def _distributions(groups: Sequence[Group], request: Request) -> list[list[pd.Series]]:
    """CDFs of costs, CCDFs of the others, all on one grid."""
    share = at_most if request.kind == "cost" else at_least
    each = [[own for run in group.runs.values() if len(own := samples(run, request))] for group in groups]
    if not any(each):
        return [[] for _ in groups]
    grid = _grid(np.concatenate([values for own in each for values in own]), request)
    return [[pd.Series(share(values, grid), index=grid) for values in own] for own in each]


def _grid(values: NDArray[np.float64], request: Request) -> NDArray[np.float64]:
    """Evenly from 0, or in even ratios from where the values begin, with the marks; of p_suc, thousandths."""
    top = float(values.max()) or 1.0
    if request.kind == "p_suc":
        spread = np.arange(1001) / 1000
    elif request.x_scale == "log":
        spread = np.geomspace(max(float(np.quantile(values, 0.001)), 1e-4 * top), top, _POINTS)
    else:
        spread = np.linspace(0.0, top, _POINTS + 1)
    near = [mark for mark in request.marks if mark <= 2 * top]  # one far beyond would leave no room for the rest
    return np.unique(np.concatenate([spread, near]))


def _rows(group: Group, each: Sequence[pd.Series], request: Request) -> pd.DataFrame:
    table = _aligned(each, held=request.x == "time")
    std = table.std(axis=1, ddof=1) if request.kind != "failure-rate" else np.nan  # of yes and no, it says nothing
    rows: Any = {"x": table.index, "mean": table.mean(axis=1), "std": std, "seeds": len(each)}
    panel = ", ".join(group.panel)
    return pd.DataFrame(rows).assign(panel=panel, line=group.line).reset_index(drop=True)[list(COLUMNS)]


def _aligned(each: Sequence[pd.Series], held: bool) -> pd.DataFrame:
    """One column per run, where all have a value; over time, a value is `held` until the next."""
    table = pd.concat(each, axis=1).sort_index()
    if held:
        end = min(own.index[-1] for own in each if len(own)) if any(map(len, each)) else 0.0
        table = table.ffill().loc[:end]
    return table.dropna()
