"""Draws a figure as in the paper: lines for the mean, shaded areas for the standard deviation or another band.

Against a swept key it has points with error bars, or bars for totals.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vefl_sim.analysis.figures.curves import REFERENCE, band_words
from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import measure_of, metric_in, x_name, y_name
from vefl_sim.analysis.figures.names import with_symbols
from vefl_sim.analysis.figures.request import Request
from vefl_sim.analysis.figures.style import PRINT_STYLE, file_contents, legend_below, line_styles
from vefl_sim.core.arrays import Floats
from vefl_sim.learning.metric import Metric

COLUMN_IN, PAGE_IN, HEIGHT_IN = 3.5, 7.16, 2.3  # widths of one and two journal columns, and the height
_GAP = 0.16  # between two markers of a line, as a part of the diagonal of the panel
_SINGLE_COLOUR = "#3f6aa3"  # of bars, if there is only one line
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

    @cached_property
    def metric(self) -> Metric | None:
        """The metric of all runs that have learnt; None if there is none."""
        return metric_in(run for group in self.groups for run in group.runs.values())

    @property
    def references(self) -> pd.DataFrame:
        """The marks that have a reference value."""
        return self.marks.dropna(subset=REFERENCE) if REFERENCE in self.marks else self.marks.iloc[:0]

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

    def ends(self, rows: pd.DataFrame) -> Floats:
        """The lower and upper ends of the bands of some rows, within the possible values."""
        is_share = self.request.is_distribution or measure_of(self.request.kind, self.metric).is_share
        ends: Floats = np.clip(rows[["low", "high"]].to_numpy(float).T, 0.0, 1.0 if is_share else np.inf)
        return ends


def pictures(curves: Curves) -> dict[str, bytes]:
    """Draw the figure; returns the content of the files by their ending."""
    panels = list(dict.fromkeys(curves.rows["panel"]))
    with rc_context(PRINT_STYLE):
        figure = Figure(figsize=(COLUMN_IN if len(panels) == 1 else PAGE_IN, HEIGHT_IN), layout="constrained")
        places = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        handles: dict[str, Any] = {}
        for axes, panel in zip(places, panels, strict=True):
            handles |= draw_panel(axes, curves.rows[curves.rows["panel"] == panel], curves)
            axes.set_title(with_symbols(panel), loc="left", fontsize=8)  # the right side is for a note
        places[0].set_ylabel(with_symbols(y_name(curves.request, curves.metric)))
        _add_legend_and_notes(figure, places[-1], curves, handles)
        return file_contents(figure)


def _add_legend_and_notes(figure: Figure, last: Axes, curves: Curves, handles: dict[str, Any]) -> None:
    """Add the legend, the title, the number of seeds if some are missing, and what band and hollow markers mean."""
    band = band_words(curves.request).strip() if "band" in curves.request.model_fields_set else ""
    seeds, several = _seeds(curves.groups), len(curves.lines) > 1
    if several:
        own = {line: handles[line] for line in curves.lines if line in handles}
        by_line = {line: _seeds([group for group in curves.groups if group.line == line]) for line in own}
        shown = {line: f"{line} ({count})" for line, count in by_line.items() if count and "–" in seeds}
        legend_below(figure, own, shown, points=7, title="; ".join(filter(None, [curves.legend, band])))
    notes = [
        "" if several and "–" in seeds else seeds,
        "" if several else band,
        "○ reference" if len(curves.references) else "",
    ]
    last.set_title(", ".join(filter(None, notes)), loc="right", fontsize=7, color="0.4")
    if curves.request.title:
        figure.suptitle(with_symbols(curves.request.title), fontsize=9)


def _seeds(groups: Sequence[Group]) -> str:
    """How many seeds some groups have, for example "2–3 of 5 seeds"; empty if none is missing."""
    counts, wanted = sorted({len(group.runs) for group in groups}), len(groups[0].points)
    if counts == [wanted]:
        return ""
    return f"{'–'.join(str(count) for count in dict.fromkeys([counts[0], counts[-1]]))} of {wanted} seeds"


def draw_panel(axes: Axes, rows: pd.DataFrame, curves: Curves) -> dict[str, Any]:
    """Draw the rows of one panel with its axes; returns the legend handle of each line."""
    handles = (_draw_values if curves.xs else _draw_lines)(axes, rows, curves)
    styles = line_styles(curves.lines)
    references = curves.references
    for _, row in references[references["panel"] == rows["panel"].iloc[0]].iterrows() if len(references) else ():
        hollow = {"mec": styles[row["line"]]["color"], "mfc": "none", "ms": 4, "mew": 0.9}
        axes.plot(row["x"], row[REFERENCE], "o", zorder=5, clip_on=False, **hollow)
    axes.set_xlabel(with_symbols(curves.x_name if curves.xs else x_name(curves.request)))
    _set_axes(axes, curves)
    return handles


def _draw_lines(axes: Axes, rows: pd.DataFrame, curves: Curves) -> dict[str, Any]:
    """Draw the lines of one panel, with markers at different places; returns the legend handle of each line."""
    styles, handles = line_styles(curves.lines), {}
    for place, (line, style) in enumerate(styles.items()):
        own = rows[rows["line"] == line]
        x, mean = (own[name].to_numpy(float) for name in ("x", "mean"))
        form: dict[str, Any] = {"markevery": (_GAP * (0.3 + place / len(styles)), _GAP)} if len(x) > 1 else {}
        if len(styles) == 1 and len(x) > 1:
            form["marker"] = ""
        if len(own):
            (handles[line],) = axes.plot(x, mean, **style | form)
        if own["low"].notna().any():
            axes.fill_between(x, *curves.ends(own), color=style["color"], alpha=0.15, lw=0)
    return handles


def _draw_values(axes: Axes, rows: pd.DataFrame, curves: Curves) -> dict[str, Any]:
    """Draw bars, or points with error bars, at the values of a swept key, lines side by side; returns their handles."""
    styles = line_styles(curves.lines)
    handles: dict[str, Any] = {}
    lines = [line for line in curves.lines if line in set(rows["line"])]
    width = 0.8 / max(len(lines), 1.45)
    for place, line in enumerate(lines):
        own, style = rows[rows["line"] == line], styles[line]
        own = own.assign(at=own["x"] if curves.is_numeric else own["x"].map(curves.xs.index)).sort_values("at")
        at, mean = (own[name].to_numpy(float) for name in ("at", "mean"))
        errors = np.nan_to_num(np.abs(curves.ends(own) - mean)) if own["low"].notna().any() else None
        beside = place - (len(lines) - 1) / 2
        if curves.request.has_bars:
            handles[line] = axes.bar(
                at + beside * width, mean, 0.92 * width, yerr=errors, capsize=2.5,
                color=style["color"] if len(lines) > 1 else _SINGLE_COLOUR,
                hatch="///" if style["ls"] == "--" else None, edgecolor="white", error_kw={"lw": 1, "ecolor": "0.55"},
            )  # fmt: skip
            continue
        if curves.request.x_scale == "log":
            at = at * 1.03**beside
        else:
            at = at + beside * (0.014 * np.ptp(np.array(curves.xs, float)) if curves.is_numeric else 0.15)
        form = style | {"ls": style["ls"] if curves.is_numeric else "", "ms": 4.5}
        handles[line] = axes.errorbar(at, mean, errors, capsize=2, elinewidth=0.9, **form)
    return handles


def _set_axes(axes: Axes, curves: Curves) -> None:
    """Set scale, ticks and ranges of the axes; ranges in the request have priority."""
    request = curves.request
    if request.x_scale == "log":
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    if curves.xs:
        _name_values(axes, curves)
    elif not request.is_distribution and request.x != "time":
        axes.locator_params(axis="x", integer=True)
    low, high = curves.ends(curves.rows)
    if request.y_range:
        axes.set_ylim(*request.y_range)
    elif not curves.xs and request.kind in ("p_suc", "delivered"):  # shares near 1
        depth = 1.15 * (1 - np.nanmin([*curves.rows["mean"], *low]))
        axes.set_ylim(max(0.0, 1 - max(depth, 0.01)), 1 + 0.02 * max(depth, 0.01))
    elif not curves.xs or request.has_bars:  # points show differences, which an axis from 0 would hide
        tops = [*curves.rows["mean"], *high, *curves.references.get(REFERENCE, ())]
        axes.set_ylim(0.0, 1.05 * np.nanmax(tops) or 1.0)
    if request.x_range:
        axes.set_xlim(*request.x_range)


def _name_values(axes: Axes, curves: Curves) -> None:
    """Ticks at the values of the swept key; long names are slanted."""
    names = [with_symbols(f"{x:.10g}" if isinstance(x, float) else str(x)) for x in curves.xs]
    if curves.is_numeric:
        spread = np.sort(np.log(curves.xs) if curves.request.x_scale == "log" else np.array(curves.xs, float))
        if len(names) <= _MAX_TICKS and np.diff(spread).min(initial=np.inf) > 0.08 * np.ptp(spread):
            axes.set_xticks(curves.xs, names)
            axes.set_xticks([], minor=True)
        return
    axes.set_xticks(range(len(names)), names)
    axes.grid(False, axis="x")
    axes.set_xlim(-0.6, len(names) - 0.4)
    if sum(map(len, names)) > 42:
        axes.tick_params(axis="x", rotation=25, pad=1)
        for label in axes.get_xticklabels():
            label.set(horizontalalignment="right", rotation_mode="anchor")
