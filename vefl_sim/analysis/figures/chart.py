"""The numbers of a figure: the values of its lines, their means over seeds with a band, and their differences."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import Measure, measure_of, metric_in, samples, scalar, series
from vefl_sim.analysis.figures.request import Band, Request
from vefl_sim.core.arrays import Floats
from vefl_sim.learning.metric import Metric
from vefl_sim.sweep import paired

CCDFS = ("sojourn", "p_suc")
"""Kinds of which a distribution shows the share above x; the others show the share below."""
REFERENCE = "reference"
"""Column of reference values, mostly from the paper."""
_COLUMNS = ["panel", "line", "x", "mean", "std", "seeds", "low", "high"]
_DIFFERENCE_COLUMNS = ["panel", "line", "reference", "figure", "pairs", "difference", "half_width", "differs"]
_POINTS = 500  # of the x-grid of a distribution
_BANDS: dict[Band, str] = {
    "ci95": " ± half-width of the 95 % interval", "sd": " ± s.d.", "minmax": " [least, largest]", "none": "",
}  # fmt: skip


@dataclass(frozen=True)
class Chart:
    """The lines of a figure, or the cells of a table: what is requested, and the groups of runs it is made from."""

    request: Request
    groups: Sequence[Group]
    x_name: str = ""  # of the swept key on the x-axis, if there is one
    legend: str = ""  # what the symbols in the legend mean
    given: Sequence[pd.DataFrame] = ()  # `values`, if they are not those of the runs

    @cached_property
    def metric(self) -> Metric | None:
        """The metric of all runs that have learnt; None if there is none, or if they have different ones."""
        return metric_in(run for group in self.groups for run in group.runs.values())

    @property
    def measure(self) -> Measure:
        """What is measured."""
        return measure_of(self.request.measured.kind, self.metric)

    @property
    def lines(self) -> list[str]:
        """All lines, including those without finished points, so that colours do not change when points are added."""
        return list(dict.fromkeys(group.line for group in self.groups))

    @property
    def xs(self) -> list[Any]:
        """The values of the swept key on the x-axis; empty if there is none."""
        return list(dict.fromkeys(group.x for group in self.groups if group.x_label))

    @cached_property
    def numbers(self) -> "list[pd.Series[float]]":
        """For each group, the number that represents each run, by seed, where it has one."""
        request = self.request.measured
        by_seed = ({seed: scalar(run, request) for seed, run in group.runs.items()} for group in self.groups)
        return [pd.Series(own, dtype=float).dropna() for own in by_seed]

    @cached_property
    def values(self) -> Sequence[pd.DataFrame]:
        """For each group, a table with one row per x and one column per seed."""
        request = self.request
        if self.given:
            return self.given
        if request.is_distribution:
            return _distributions(self.groups, request)
        if self.xs or request.kind == "table":
            return [own.to_frame(group.x).T for own, group in zip(self.numbers, self.groups, strict=True)]
        by_seed = ({seed: series(run, request) for seed, run in group.runs.items()} for group in self.groups)
        return [_aligned(own, hold=request.x == "time") for own in by_seed]

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row per panel, line and x: mean, standard deviation of the sample, number of seeds, and ends of the band.

        A table has a row for each of its cells, also for those without runs.
        """
        filled = [place for place, own in enumerate(self.values) if own.size or self.request.kind == "table"]
        tables = [self._rows(place) for place in filled]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=_COLUMNS)

    @cached_property
    def marks(self) -> pd.DataFrame:
        """The rows at the marks (or at the last x before), none beyond the end of a line; and reference values.

        Against a swept key there are no values between those of the sweep.
        """
        rows: list[dict[str, Any]] = []
        for panel, line in dict.fromkeys((group.panel, group.line) for group in self.groups):
            own = self.rows[(self.rows["panel"] == panel) & (self.rows["line"] == line)]
            published = self.request.reference.get(line_name(panel, line)) or [math.nan] * len(self.request.marks)
            for mark, reference in zip(self.request.marks, published, strict=True):
                found = own[own["x"] == mark] if self.xs else _last_before(own, mark)
                if len(found) or not math.isnan(reference):
                    names = {"panel": panel, "line": line, "x": mark, REFERENCE: reference}
                    rows.append((found.iloc[0].to_dict() if len(found) else {}) | names)
        return pd.DataFrame(rows, columns=[*_COLUMNS, *[REFERENCE] * bool(self.request.reference)])

    @property
    def references(self) -> pd.DataFrame:
        """The marks that have a reference value."""
        return self.marks.dropna(subset=REFERENCE) if REFERENCE in self.marks else self.marks.iloc[:0]

    @cached_property
    def differences(self) -> pd.DataFrame:
        """Differences of every line to the first finished one of its panel, or to figure.compare_to, paired by seed."""
        rows = []
        for place, group in enumerate(self.groups):
            peers = (other for other, own in enumerate(self.groups) if own.panel == group.panel and own.runs)
            reference = self._compared_to(place) if self.request.compare_to else next(peers, None)
            if group.runs and reference not in (None, place) and self.groups[reference].runs:
                names = {"panel": group.panel, "line": group.title, "reference": self.groups[reference].title}
                pair = paired.difference(self.numbers[place], self.numbers[reference])
                rows.append(names | {"figure": self.measure.number} | pair)
        return pd.DataFrame(rows, columns=_DIFFERENCE_COLUMNS)

    def ends(self, rows: pd.DataFrame) -> Floats:
        """The lower and upper ends of the bands of some rows, within the possible values."""
        most = 1.0 if self.request.is_distribution or self.measure.is_share else np.inf
        return np.asarray(np.clip(rows[["low", "high"]].to_numpy(float).T, 0.0, most))

    def _compared_to(self, place: int) -> int | None:
        """The group that figure.compare_to names for this one: of the same panel and x; None if there is none."""
        own, name = self.groups[place], self.request.compare_to
        peers = ((other, group) for other, group in enumerate(self.groups) if group.panel == own.panel)
        return next((other for other, g in peers if (g.line == name and g.x == own.x) or g.title == name), None)

    def _rows(self, place: int) -> pd.DataFrame:
        """The rows of one group. What others are compared to has no band, if theirs are those of the differences."""
        group, table, band = self.groups[place], self.values[place], self.request.band
        compared = None
        if band == "ci95" and self.request.compare_to:
            reference = self._compared_to(place)
            if reference in (None, place):
                band = "none"
            elif len(compared := self.values[reference]) and self.xs:
                compared = compared.set_axis(table.index)  # the x of the reference may be another variant
            elif self.request.x == "time":  # rounds of other lines may end at other times
                compared = compared.reindex(table.index, method="ffill")
        rows = with_band(table, band, compared)
        if not self.request.has_band and not group.x_label:
            rows[["std", "low", "high"]] = np.nan  # zeros and ones have no meaningful standard deviation
        rows = rows.assign(x=table.index, seeds=table.shape[1], panel=group.panel, line=group.line)
        return rows.reset_index(drop=True)[_COLUMNS]


def _last_before(rows: pd.DataFrame, mark: float) -> pd.DataFrame:
    """The last row up to a mark; none if the line begins later, or ended more than one step before."""
    xs = rows["x"].to_numpy(float)
    end = 2 * xs[-1] - xs[-2] if len(xs) > 1 else xs[-1:].max(initial=-math.inf)
    return rows[xs <= mark].tail(1) if mark < end or mark in xs else rows.iloc[:0]


def line_name(panel: str, line: str) -> str:
    """The printed name of a line, with its panel."""
    return ", ".join(filter(None, [panel, line]))


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
        half = paired.half_widths(pairs).reindex(table.index)
    return pd.DataFrame({"mean": mean, "std": std, "low": mean - half, "high": mean + half})


def band_text(row: "pd.Series[Any]", band: Band, digits: int, plus_minus: str = "±") -> str:
    """The band of a row of `with_band` in words, for example ±0.0123; empty if there is none."""
    if math.isnan(row["low"]):
        return ""
    if band == "minmax":
        return f"[{row['low']:.{digits}f}, {row['high']:.{digits}f}]"
    return f"{plus_minus}{row['high'] - row['mean']:.{digits}f}"


def band_words(request: Request, *, is_paired: bool = True) -> str:
    """What is around a mean, for example " ± s.d."; `is_paired`: whether compare_to has an effect."""
    compared = request.compare_to if request.band == "ci95" and is_paired else ""
    return _BANDS[request.band] + (f" of the difference to {compared}" if compared else "")


def _distributions(groups: Sequence[Group], request: Request) -> list[pd.DataFrame]:
    """For each group, one column per seed: the share of its samples up to x, or from x on, all on the same x-grid."""
    each = [{seed: own for seed, run in group.runs.items() if len(own := samples(run, request))} for group in groups]
    if not any(each):
        return [pd.DataFrame() for _ in groups]
    grid = _grid(np.concatenate([values for own in each for values in own.values()]), request)
    return [
        pd.DataFrame({seed: share_beyond(values, grid, request.kind) for seed, values in own.items()}, index=grid)
        for own in each
    ]


def share_beyond(values: Floats, grid: Floats, kind: str) -> Floats:
    """For each x of the grid, the share of the values that are ≥ x for the CCDF of some kinds, or else ≤ x."""
    if kind in CCDFS:
        return 1 - np.searchsorted(np.sort(values), grid, side="left") / len(values)
    return np.searchsorted(np.sort(values), grid, side="right") / len(values)


def _grid(values: Floats, request: Request) -> Floats:
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


def _aligned(each: Mapping[int, "pd.Series[float]"], hold: bool) -> pd.DataFrame:
    """One column per seed, for all x at which every run has a value; with `hold`, a value is valid until the next."""
    known = {seed: own for seed, own in each.items() if len(own)}  # runs without values hide no other
    if not known:
        return pd.DataFrame()
    table = pd.concat(known, axis=1).sort_index()
    if hold:
        table = table.ffill().loc[: min(own.index[-1] for own in known.values())]
    return table.dropna()
