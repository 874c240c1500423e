"""Draws charts as in the paper: lines for the mean, shaded areas for the standard deviation or another band.

Against a swept key a chart has points with error bars, or bars for totals. The style of all figures is here, too.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vefl_sim.analysis.figures.chart import REFERENCE, Chart, band_words
from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import x_name, y_name
from vefl_sim.analysis.figures.names import with_symbols

COLUMN_IN, PAGE_IN, HEIGHT_IN = 3.5, 7.16, 2.3  # widths of one and two journal columns, and the height
_GAP = 0.16  # between two markers of a line, as a part of the diagonal of the panel
SINGLE_COLOUR = "#3f6aa3"  # of bars, if there is only one line
_MAX_TICKS = 8  # on the axis of a swept key; with more values, matplotlib chooses
_COLOURS = (
    "#22303c", "#c0392b", "#3f6aa3", "#2e9e5b", "#e0a100", "#7d3c98", "#17a2b8", "#e377c2", "#8c564b", "#8a97a6",
)  # fmt: skip
_MARKERS = ("s", "^", "D", "v", "P", "X", "<", "*", ">", "p", "h")
"""One more than colours, so that they repeat after 110 lines; "o" is for reference values."""
_UNCONSTRAINED = ", unconstrained"
STYLE: Any = {
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "axes.grid": True,
    "grid.color": "#e8ecef",
}  # fmt: skip
"""Matplotlib settings."""
PRINT_STYLE: Any = STYLE | {"font.size": 8, "pdf.fonttype": 42}
"""Of figures with the width of a journal column or page."""


def line_styles(labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A line style for each label; a scheme without constraints has the same colour as with them, but is dashed.

    Later lines are thinner, so that a line that is covered by a later one is still visible at its edges.
    """
    schemes = list(dict.fromkeys(label.removesuffix(_UNCONSTRAINED) for label in labels))
    return {
        label: {
            "label": label,
            "color": _COLOURS[schemes.index(label.removesuffix(_UNCONSTRAINED)) % len(_COLOURS)],
            "ls": "--" if label.endswith(_UNCONSTRAINED) else "-",
            "lw": width,
            "marker": _MARKERS[place % len(_MARKERS)],
            "ms": 3.6,
            "mec": "white",
            "mew": 0.4,
        }
        for place, (label, width) in enumerate(zip(labels, np.linspace(1.8, 0.8, len(labels)), strict=True))
    }


def legend_below(
    figure: Figure, by_label: Mapping[str, Any], texts: Sequence[str] = (), points: float = 9, title: str = ""
) -> None:
    """Add a legend below the panels, in as many columns as fit; the figure becomes higher by its height.

    `texts`: what is shown instead of the labels; `points`: the font size; `title`: above the labels.
    """
    texts = texts or [*by_label]
    width_in, height_in = figure.get_size_inches()
    size = points / 9
    columns = max(1, int(width_in / (size * (0.62 + 0.066 * max(map(len, texts))))))
    rows = ceil(len(texts) / columns)
    figure.set_size_inches(width_in, height_in + 0.2 * size * (rows + bool(title)))
    figure.legend(
        [*by_label.values()], [*map(with_symbols, texts)], ncols=ceil(len(texts) / rows),
        loc="outside lower center", frameon=False, handlelength=2.8, columnspacing=1.5, fontsize=points,
        title=with_symbols(title) or None, title_fontsize=points,
    )  # fmt: skip


def draw_chart(chart: Chart, size_in: tuple[float, float] | None = None, points: float = 7) -> Figure:
    """Draw a chart with its panels, legend, title, and notes on missing seeds, the band and hollow markers.

    `size_in`: width and height, by default those of the paper; `points`: font size of the legend.
    """
    panels = list(dict.fromkeys(chart.rows["panel"]))
    usual_in = COLUMN_IN if len(panels) == 1 else PAGE_IN, HEIGHT_IN
    figure = Figure(figsize=size_in or usual_in, layout="constrained")
    places = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    handles: dict[str, Any] = {}
    for axes, panel in zip(places, panels, strict=True):
        handles |= draw_panel(axes, chart, panel)
        axes.set_title(with_symbols(panel), loc="left", fontsize=8)  # the right side is for a note
    places[0].set_ylabel(with_symbols(y_name(chart.request, chart.metric)))
    band = band_words(chart.request).strip() if "band" in chart.request.model_fields_set else ""
    seeds, several = _seeds(chart.groups), len(chart.lines) > 1
    if several:
        own = {line: handles[line] for line in chart.lines if line in handles}
        by_line = [_seeds([group for group in chart.groups if group.line == line]) for line in own]
        counts = [f" ({count})" if count and "–" in seeds else "" for count in by_line]
        shown = [line + count for line, count in zip(own, counts, strict=True)]
        legend_below(figure, own, shown, points, "; ".join(filter(None, [chart.legend, band])))
    notes = [
        "" if several and "–" in seeds else seeds,
        "" if several else band,
        "○ reference" if len(chart.references) else "",
    ]
    places[-1].set_title(", ".join(filter(None, notes)), loc="right", fontsize=7, color="0.4")
    if chart.request.title:
        figure.suptitle(with_symbols(chart.request.title), fontsize=9)
    return figure


def _seeds(groups: Sequence[Group]) -> str:
    """How many seeds some groups have, for example "2–3 of 5 seeds"; empty if none is missing."""
    counts, wanted = sorted(len(group.runs) for group in groups), max(len(group.points) for group in groups)
    if counts[0] >= wanted:
        return ""
    return f"{'–'.join(str(count) for count in dict.fromkeys([counts[0], counts[-1]]))} of {wanted} seeds"


def draw_panel(axes: Axes, chart: Chart, panel: str = "") -> dict[str, Any]:
    """Draw the rows of one panel with its axes; returns the legend handle of each line."""
    rows, styles = chart.rows[chart.rows["panel"] == panel], line_styles(chart.lines)
    handles = (_draw_values if chart.xs else _draw_lines)(axes, rows, chart)
    for _, row in chart.references[chart.references["panel"] == panel].iterrows():
        hollow = {"mec": styles[row["line"]]["color"], "mfc": "none", "ms": 4, "mew": 0.9}
        axes.plot(row["x"], row[REFERENCE], "o", zorder=5, clip_on=False, **hollow)
    axes.set_xlabel(with_symbols(chart.x_name if chart.xs else x_name(chart.request)))
    _set_axes(axes, chart)
    return handles


def _draw_lines(axes: Axes, rows: pd.DataFrame, chart: Chart) -> dict[str, Any]:
    """Draw the lines of one panel, with markers at different places; returns the legend handle of each line."""
    styles, handles = line_styles(chart.lines), {}
    for place, (line, style) in enumerate(styles.items()):
        own = rows[rows["line"] == line]
        x, mean = (own[name].to_numpy(float) for name in ("x", "mean"))
        form: dict[str, Any] = {"markevery": (_GAP * (0.3 + place / len(styles)), _GAP)} if len(x) > 1 else {}
        if len(styles) == 1 and len(x) > 1:
            form["marker"] = ""
        if len(own):
            (handles[line],) = axes.plot(x, mean, **style | form)
        if own["low"].notna().any():
            axes.fill_between(x, *chart.ends(own), color=style["color"], alpha=0.15, lw=0)
    return handles


def _draw_values(axes: Axes, rows: pd.DataFrame, chart: Chart) -> dict[str, Any]:
    """Draw bars, or points with error bars, at the values of a swept key, lines side by side; returns their handles."""
    styles, is_numeric = line_styles(chart.lines), _is_numeric(chart)
    handles: dict[str, Any] = {}
    lines = [line for line in chart.lines if line in set(rows["line"])]
    width = 0.8 / max(len(lines), 1.45)
    for place, line in enumerate(lines):
        own, style = rows[rows["line"] == line], styles[line]
        own = own.assign(at=own["x"] if is_numeric else own["x"].map(chart.xs.index)).sort_values("at")
        at, mean = (own[name].to_numpy(float) for name in ("at", "mean"))
        errors = np.nan_to_num(np.abs(chart.ends(own) - mean)) if own["low"].notna().any() else None
        beside = place - (len(lines) - 1) / 2
        if chart.request.has_bars:
            handles[line] = axes.bar(
                at + beside * width, mean, 0.92 * width, yerr=errors, capsize=2.5,
                color=style["color"] if len(lines) > 1 else SINGLE_COLOUR,
                hatch="///" if style["ls"] == "--" else None, edgecolor="white", error_kw={"lw": 1, "ecolor": "0.55"},
            )  # fmt: skip
            continue
        if chart.request.x_scale == "log":
            at = at * 1.03**beside
        else:
            at = at + beside * (0.014 * np.ptp(np.array(chart.xs, float)) if is_numeric else 0.15)
        form = style | {"ls": style["ls"] if is_numeric else "", "ms": 4.5}
        handles[line] = axes.errorbar(at, mean, errors, capsize=2, elinewidth=0.9, **form)
    return handles


def _is_numeric(chart: Chart) -> bool:
    """Whether the values of the swept key have their true distances on the axis: not those of bars or text."""
    return not chart.request.has_bars and not any(isinstance(x, str) for x in chart.xs)


def _set_axes(axes: Axes, chart: Chart) -> None:
    """Set scale, ticks and ranges of the axes; ranges in the request have priority."""
    request = chart.request
    if request.x_scale == "log":
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    if chart.xs:
        _name_values(axes, chart)
    elif not request.is_distribution and request.x != "time":
        axes.locator_params(axis="x", integer=True)
    low, high = chart.ends(chart.rows)
    if request.y_range:
        axes.set_ylim(*request.y_range)
    elif not chart.xs and request.kind in ("p_suc", "delivered"):  # shares near 1
        depth = max(1.15 * (1 - np.nanmin([*chart.rows["mean"], *low])), 0.01)
        axes.set_ylim(max(0.0, 1 - depth), 1 + 0.02 * depth)
    elif not chart.xs or request.has_bars:  # points show differences, which an axis from 0 would hide
        tops = [*chart.rows["mean"], *high, *chart.references.get(REFERENCE, ())]
        axes.set_ylim(0.0, 1.05 * np.nanmax(tops) or 1.0)
    if request.x_range:
        axes.set_xlim(*request.x_range)


def _name_values(axes: Axes, chart: Chart) -> None:
    """Ticks at the values of the swept key; long names are slanted."""
    names = [with_symbols(f"{x:.10g}" if isinstance(x, float) else str(x)) for x in chart.xs]
    if _is_numeric(chart):
        spread = np.sort(np.log(chart.xs) if chart.request.x_scale == "log" else np.array(chart.xs, float))
        if len(names) <= _MAX_TICKS and np.diff(spread).min(initial=np.inf) > 0.08 * np.ptp(spread):
            axes.set_xticks(chart.xs, names)
            axes.set_xticks([], minor=True)
        return
    is_long = sum(map(len, names)) > 42
    slanted: Any = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
    axes.set_xticks(range(len(names)), names, **slanted)
    axes.grid(False, axis="x")
    axes.set_xlim(-0.6, len(names) - 0.4)
