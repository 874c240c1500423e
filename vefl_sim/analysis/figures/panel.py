"""Draws one panel of a figure: lines with shaded areas, points with error bars against a swept key, or bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import Measure, measure_of, metric_in, x_name
from vefl_sim.analysis.figures.names import with_symbols
from vefl_sim.analysis.figures.reference import COLUMN
from vefl_sim.analysis.figures.request import Request
from vefl_sim.analysis.figures.style import line_styles
from vefl_sim.core.arrays import Floats
from vefl_sim.learning.metric import Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SINGLE_COLOUR = "#3f6aa3"  # of bars, if there is only one line
_SIDES = {"failure-rate": "mid", "sojourn": "pre", "p_suc": "pre", "delay": "post", "cost": "post", "energy": "post"}
_GAP = 0.16  # between two markers of a line, as a part of the diagonal of the panel
_MAX_TICKS = 8  # on the axis of a swept key; with more values, matplotlib chooses


@dataclass(frozen=True)
class Curves:
    """The data of a figure: its rows, the groups they come from, and the request."""

    rows: pd.DataFrame
    groups: Sequence[Group]
    request: Request
    x_name: str  # of the swept key on the x-axis, if there is one
    marks: pd.DataFrame = field(default_factory=pd.DataFrame)  # with reference values, if there are any
    legend: str = ""  # what the symbols in the legend mean
    dashed: Mapping[str, int] | None = None  # instead of `covered`, if other panels have the same legend

    @cached_property
    def metric(self) -> Metric | None:
        """The metric of all runs that have learnt; None if there is none."""
        return metric_in(run for group in self.groups for run in group.runs.values())

    @property
    def references(self) -> pd.DataFrame:
        """The marks that have a reference value."""
        return self.marks.dropna(subset=COLUMN) if COLUMN in self.marks else self.marks.iloc[:0]

    @property
    def lines(self) -> list[str]:
        """All lines, including those without finished points, so that colours do not change when points are added."""
        return list(dict.fromkeys(group.line for group in self.groups))

    @property
    def xs(self) -> list[Any]:
        """The values of the swept key on the x-axis; empty if there is none."""
        return list(dict.fromkeys(group.x for group in self.groups if group.x_label))

    @property
    def is_numeric(self) -> bool:
        """Whether the values of the swept key have their true distances on the axis: not those of bars or text."""
        return not self.request.has_bars and not any(isinstance(x, str) for x in self.xs)

    @property
    def side(self) -> Any:
        """On which side of an x a line steps, if it steps: averages of distributions, and failures."""
        stepping = self.request.is_distribution or self.request.kind == "failure-rate"
        return _SIDES[self.request.kind] if stepping else None

    @property
    def top(self) -> float:
        """The highest possible value."""
        return 1.0 if self.request.is_distribution or self.measure.is_share else np.inf

    @property
    def measure(self) -> Measure:
        """What the figure shows, with its names."""
        return measure_of(self.request.kind, self.metric)

    @cached_property
    def covered(self) -> dict[str, int]:
        """For each line, how many earlier lines it lies on for more than half of its course, in any panel."""
        counts = dict.fromkeys(self.lines, 0)
        for _, panel in self.rows.groupby("panel", sort=False):
            drawn = [(line, panel[panel["line"] == line]) for line in self.lines]
            for place, (line, own) in enumerate(drawn):
                below = sum(_lies_on(own, other) for _, other in drawn[:place])
                counts[line] = max(counts[line], below)
        return counts


def draw_panel(axes: "Axes", rows: pd.DataFrame, curves: Curves) -> dict[str, Any]:
    """Draw the rows of one panel with its axes; returns the legend handle of each line."""
    if curves.xs:
        handles = (_bars if curves.request.has_bars else _points)(axes, rows, curves)
        _name_xs(axes, curves)
    else:
        handles = _lines(axes, rows, curves)
    axes.set(xlabel=with_symbols(curves.x_name if curves.xs else x_name(curves.request)))
    _references(axes, rows["panel"].iloc[0], curves)
    _set_ranges(axes, curves)
    return handles


def _lines(axes: "Axes", rows: pd.DataFrame, curves: Curves) -> dict[str, Any]:
    """Draw the lines of one panel, with markers at different places; returns the legend handle of each line."""
    side = curves.side
    styles = _styles(curves)
    handles = {}
    for line, own in rows.groupby("line", sort=False):
        style = styles[str(line)]
        x, mean = (own[name].to_numpy(float) for name in ("x", "mean"))
        form: Any = {"drawstyle": f"steps-{side}" if side else "default"}
        form |= {"markevery": (_GAP * (0.3 + curves.lines.index(str(line)) / len(styles)), _GAP)} if len(x) > 1 else {}
        if len(styles) == 1 and len(x) > 1:
            form["marker"] = ""
        (handles[str(line)],) = axes.plot(x, mean, **style | form)
        if own["low"].notna().any():
            low, high = np.clip([own["low"], own["high"]], 0.0, curves.top)
            axes.fill_between(x, low, high, step=side, color=style["color"], alpha=0.15, lw=0)
    return handles


def _references(axes: "Axes", panel: str, curves: Curves) -> None:
    """Draw reference values at the marks, as hollow markers in the colour of their line."""
    styles = _styles(curves)
    for _, row in curves.references.iterrows():
        if row["panel"] == panel:
            colour = styles[row["line"]]["color"]
            axes.plot(row["x"], row[COLUMN], "o", mec=colour, mfc="none", ms=4, mew=0.9, ls="", zorder=5, clip_on=False)


def _bars(axes: "Axes", rows: pd.DataFrame, curves: Curves) -> dict[str, Any]:
    """Draw one panel as bars, with the lines side by side at each x; returns the legend handle of each line."""
    lines = [line for line in curves.lines if line in set(rows["line"])]
    styles = _styles(curves)
    width = 0.8 / len(lines) if len(lines) > 1 else 0.55
    handles = {}
    for place, line in enumerate(lines):
        own, style = rows[rows["line"] == line], styles[line]
        at = [curves.xs.index(x) + (place - (len(lines) - 1) / 2) * width for x in own["x"]]
        error = _errors(own)
        handles[line] = axes.bar(
            at, own["mean"].to_numpy(float), 0.92 * width, yerr=error if error.any() else None, capsize=2.5,
            color=style["color"] if len(lines) > 1 else _SINGLE_COLOUR, hatch="///" if style["ls"] == "--" else None,
            edgecolor="white", error_kw={"lw": 1, "ecolor": "0.55"},
        )  # fmt: skip
    return handles


def _points(axes: "Axes", rows: pd.DataFrame, curves: Curves) -> dict[str, Any]:
    """Draw one panel as points with error bars, lines slightly side by side; returns legend handles."""
    styles, log = _styles(curves), curves.request.x_scale == "log"
    handles = {}
    for place, line in enumerate(curves.lines):
        own = rows[rows["line"] == line]
        own = own.assign(at=own["x"] if curves.is_numeric else own["x"].map(curves.xs.index)).sort_values("at")
        if not len(own):
            continue
        at, mean = (own[name].to_numpy(float) for name in ("at", "mean"))
        shift = (place - (len(styles) - 1) / 2) * _shift(curves)
        form = {"ls": styles[line]["ls"] if curves.is_numeric else "", "ms": 4.5, "mec": "white", "mew": 0.5}
        handles[line] = axes.errorbar(
            at * np.exp(shift) if log else at + shift, mean, capsize=2,
            yerr=_errors(own, curves.top) if own["low"].notna().any() else None, elinewidth=0.9, **styles[line] | form,
        )  # fmt: skip
    return handles


def _errors(rows: pd.DataFrame, top: float = np.inf) -> Floats:
    """Lengths of the error bars below and above the means; 0 where there is no band."""
    ends = rows[["low", "high"]].to_numpy(float).T
    lengths: Floats = np.abs(np.clip(ends, 0.0, top) - rows["mean"].to_numpy(float))
    return np.nan_to_num(lengths)


def _shift(curves: Curves) -> float:
    """Distance on the x-axis between points of neighbouring lines at the same x; between logarithms on a log scale."""
    count = len(curves.lines)
    if not curves.is_numeric:
        return 0.6 / max(count, 4)
    places = np.sort(np.array(curves.xs, float))
    places = np.log(places) if curves.request.x_scale == "log" else places
    return float(min(0.014 * np.ptp(places), 0.4 * np.diff(places).min() / count)) if len(places) > 1 else 0.0


def _name_xs(axes: "Axes", curves: Curves) -> None:
    """Ticks at the values of the swept key; long names are slanted."""
    names = [with_symbols(_value(x)) for x in curves.xs]
    if not curves.is_numeric:
        axes.set_xticks(range(len(names)), names)
        axes.grid(False, axis="x")
        if sum(map(len, names)) > 42:
            axes.tick_params(axis="x", rotation=25, pad=1)
            for label in axes.get_xticklabels():
                label.set(horizontalalignment="right", rotation_mode="anchor")
        axes.set_xlim(-0.6, len(names) - 0.4)
        return
    if curves.request.x_scale == "log":
        axes.set_xscale("log")
    places = np.sort(np.array(curves.xs, float))
    spread = np.log(places) if curves.request.x_scale == "log" else places
    if len(places) <= _MAX_TICKS and (len(places) == 1 or np.diff(spread).min() > 0.08 * np.ptp(spread)):
        axes.set_xticks(curves.xs, names)
        axes.set_xticks([], minor=True)


def _lies_on(own: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether a line is close to another one for more than half of its course, without the flat ends of both."""
    if not len(own) or not len(other) or isinstance(own["x"].iloc[0], str):
        return False
    x, mean = own["x"].to_numpy(float), own["mean"].to_numpy(float)
    other = other.sort_values("x")
    course = np.interp(x, other["x"].to_numpy(float), other["mean"].to_numpy(float), left=np.nan, right=np.nan)
    low, high = np.nanmin([mean, course]), np.nanmax([mean, course])
    margin = 0.015 * (high - low)
    flat = (np.maximum(mean, course) <= low + margin) | (np.minimum(mean, course) >= high - margin)
    close = (np.abs(mean - course) <= margin)[~flat if not flat.all() else slice(None)]
    return bool(close.mean() > 0.5)


def _styles(curves: Curves) -> dict[str, dict[str, Any]]:
    """The line styles of a comparison, but thinner because the figure is smaller."""
    styles = zip(curves.lines, line_styles(curves.lines, curves.dashed or curves.covered), strict=True)
    small = {"ms": 3.6, "mec": "white", "mew": 0.4}
    return {line: style | {"lw": 0.75 * style["lw"]} | small for line, style in styles}


def _value(x: Any) -> str:
    return f"{x:.10g}" if isinstance(x, float) else str(x)


def _set_ranges(axes: "Axes", curves: Curves) -> None:
    """Set scale, ticks and ranges of the axes; ranges in the request have priority."""
    from matplotlib.ticker import MaxNLocator

    request = curves.request
    if request.x_scale == "log" and not curves.xs:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    elif not curves.xs:
        fractions = request.x == "time" or (request.is_distribution and request.kind in ("p_suc", "delay", "energy"))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=not fractions))
    if request.is_distribution:
        axes.margins(x=0.02)
    if request.y_range:
        axes.set_ylim(*request.y_range)
    elif not curves.xs or request.has_bars:  # points show differences, which an axis from 0 would hide
        axes.set_ylim(*_y_range(_with_references(curves), request, curves.measure))
    if request.x_range:
        axes.set_xlim(*request.x_range)


def _with_references(curves: Curves) -> pd.DataFrame:
    """The rows, and the reference values as additional rows."""
    own = curves.references
    if not len(own):
        return curves.rows
    return pd.concat([curves.rows, own.assign(mean=own[COLUMN], low=np.nan, high=np.nan)], ignore_index=True)


def _y_range(rows: pd.DataFrame, request: Request, measure: Measure) -> tuple[float, float]:
    """The y-range: from 0, or from the lowest share of p_suc and of delivered updates."""
    above = float(rows[["mean", "high"]].max().max())
    if request.kind == "accuracy" and measure.is_share:
        return 0.0, min(1.0, ceil(10 * above + 0.1) / 10)
    if not request.is_distribution and not measure.is_share:
        return 0.0, 1.05 * above or 1.0
    lowest = 0.0
    if request.kind in ("p_suc", "delivered"):
        lowest = max(0.0, float(rows[["mean", "low"]].min().min()))
    depth = min(1.0, max(1.15 * (1 - lowest), 0.01))  # no curve goes below this
    return 1 - 1.02 * depth, 1 + 0.02 * depth
