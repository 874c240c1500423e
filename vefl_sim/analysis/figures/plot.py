"""Draws a figure as in the paper: lines for the mean, shaded areas for the standard deviation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import y_name
from vefl_sim.analysis.figures.names import SUBSCRIPT
from vefl_sim.analysis.figures.reference import COLUMN
from vefl_sim.analysis.figures.request import Request
from vefl_sim.analysis.figures.style import STYLE, legend_below, line_styles, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE = STYLE | {"font.size": 8, "axes.axisbelow": True, "pdf.fonttype": 42, "svg.hashsalt": ""}
_COLUMN_IN, _PAGE_IN, _HEIGHT_IN = 3.5, 7.16, 2.3  # widths of one and two journal columns, and the height
_SINGLE_COLOUR = "#3f6aa3"  # of bars, if there is only one line
_STEPS = {"failure-rate": "mid", "sojourn": "pre", "p_suc": "pre", "cost": "post"}
_P_SUC = {"ordered": "per ordered CV", "with-ineligible": "per CV, ineligible as 0"}
_P_SUC |= {"rounds": "mean per round", "rounds-with-ineligible": "mean per round, ineligible as 0"}
_P_SUC |= {"paper": "mean per round over C_k"}


@dataclass(frozen=True)
class Curves:
    """The data of a figure: its rows, the groups they come from, and the request."""

    rows: pd.DataFrame
    groups: Sequence[Group]
    request: Request
    x_name: str  # name of the x-axis of bars
    marks: pd.DataFrame = field(default_factory=pd.DataFrame)  # with reference values, if there are any

    @property
    def references(self) -> pd.DataFrame:
        """The marks that have a reference value."""
        return self.marks.dropna(subset=COLUMN) if COLUMN in self.marks else self.marks.iloc[:0]

    @property
    def lines(self) -> list[str]:
        """All lines, including those without finished points, so that colours do not change when points are added."""
        return list(dict.fromkeys(group.line for group in self.groups))

    @property
    def bars(self) -> list[str]:
        """The labels below the bars; empty if the figure has lines."""
        return list(dict.fromkeys(_value(group.x) for group in self.groups if group.bar))


def pictures(curves: Curves) -> dict[str, bytes]:
    """Draw the figure; returns the content of the files by their ending."""
    require_matplotlib()
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys(curves.rows["panel"]))
    with plt.rc_context(_STYLE):
        figure, places = plt.subplots(
            1, len(panels), sharey=True, squeeze=False, layout="constrained",
            figsize=(_COLUMN_IN if len(panels) == 1 else _PAGE_IN, _HEIGHT_IN),
        )  # fmt: skip
        handles: dict[str, Any] = {}
        for axes, panel in zip(places[0], panels, strict=True):
            rows = curves.rows[curves.rows["panel"] == panel]
            handles |= draw_panel(axes, rows, curves)
            _references(axes, panel, curves)
            axes.set_title(with_symbols(panel), loc="left", fontsize=8)  # the right side is for a note
        places[0][0].set_ylabel(y_name(curves.request))
        _notes(figure, places[0], curves, handles)
        drawn = {ending: _file_content(figure, ending) for ending in ("pdf", "png")}
        plt.close(figure)
    return drawn


def draw_panel(axes: "Axes", rows: pd.DataFrame, curves: Curves) -> dict[str, Any]:
    """Draw the rows of one panel with its axes; returns the legend handle of each line."""
    handles = _bars(axes, rows, curves) if curves.bars else _lines(axes, rows, curves)
    axes.set(xlabel=with_symbols(_x_label(curves)))
    _set_ranges(axes, curves)
    return handles


def with_symbols(text: str) -> str:
    """Write symbols as formulas; a dollar sign that does not begin a valid formula is escaped."""
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(text)
    except ValueError:
        text = text.replace("$", r"\$")
    if "$" in text:
        return text
    return SUBSCRIPT.sub(r"$\1_{\\mathrm{\2}}$", text).replace("λ\u0304", r"$\bar{\lambda}$")


def _lines(axes: "Axes", rows: pd.DataFrame, curves: Curves) -> dict[str, Any]:
    """Draw the lines of one panel; returns the legend handle of each line."""
    steps: Any = _STEPS.get(curves.request.kind)
    top = np.inf if curves.request.kind == "total-cost" else 1.0
    styles = _styles(curves)
    handles = {}
    for line, own in rows.groupby("line", sort=False):
        style = styles[str(line)]
        x, mean, std = (own[name].to_numpy(float) for name in ("x", "mean", "std"))
        form: Any = {"drawstyle": f"steps-{steps}" if steps else "default", "marker": "o" if len(x) == 1 else ""}
        (handles[str(line)],) = axes.plot(x, mean, **style | form)
        if not np.isnan(std).all():
            band = np.clip(mean - std, 0.0, top), np.clip(mean + std, 0.0, top)
            axes.fill_between(x, *band, step=steps, color=style["color"], alpha=0.15, lw=0)
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
        at = [curves.bars.index(_value(x)) + (place - (len(lines) - 1) / 2) * width for x in own["x"]]
        error = own["std"].fillna(0.0).to_numpy(float)
        handles[line] = axes.bar(
            at, own["mean"].to_numpy(float), 0.92 * width, yerr=error if error.any() else None, capsize=2.5,
            color=style["color"] if len(lines) > 1 else _SINGLE_COLOUR, hatch="///" if style["ls"] == "--" else None,
            edgecolor="white", error_kw={"lw": 1, "ecolor": "0.55"},
        )  # fmt: skip
    axes.set_xticks(range(len(curves.bars)), [with_symbols(value) for value in curves.bars])
    axes.grid(False, axis="x")
    return handles


def _styles(curves: Curves) -> dict[str, dict[str, Any]]:
    """The line styles of a comparison, but thinner because the figure is smaller."""
    styles = zip(curves.lines, line_styles(curves.lines), strict=True)
    return {line: style | {"lw": 0.75 * style["lw"]} for line, style in styles}


def _notes(figure: "Figure", places: Sequence["Axes"], curves: Curves, handles: Mapping[str, Any]) -> None:
    """Add the legend, the title, the number of seeds if some are missing, and the meaning of hollow markers."""
    if len(curves.lines) > 1:
        own = {line: handles[line] for line in curves.lines if line in handles}
        legend_below(
            figure, own, {line: with_symbols(line) + _seed_count(line, curves.groups) for line in own}, points=7
        )
    markers = "○ reference" if len(curves.references) else ""
    if note := ", ".join(filter(None, [_seed_note(curves.groups), markers])):
        places[-1].set_title(note, loc="right", fontsize=7, color="0.4")
    if curves.request.title:
        figure.suptitle(with_symbols(curves.request.title), fontsize=9)


def _value(x: Any) -> str:
    return f"{x:.10g}" if isinstance(x, float) else str(x)


def _x_label(curves: Curves) -> str:
    request = curves.request
    if curves.bars:
        return curves.x_name
    if request.kind == "p_suc":
        return f"x = p_suc, {_P_SUC[request.count]}"
    named = {"sojourn": "x = sojourn bound [s]", "cost": "x = cost per round"}
    return named.get(request.kind) or ("simulated time [s]" if request.x == "time" else "round")


def _set_ranges(axes: "Axes", curves: Curves) -> None:
    """Set scale, ticks and ranges of the axes; ranges in the request have priority."""
    from matplotlib.ticker import MaxNLocator

    request = curves.request
    if request.x_scale == "log":
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    elif not curves.bars:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=request.x != "time" and request.kind != "p_suc"))
    if request.kind in ("sojourn", "p_suc", "cost"):
        axes.margins(x=0.02)
    axes.set_ylim(*(request.y_range or _y_range(_with_references(curves), request)))
    if request.x_range:
        axes.set_xlim(*request.x_range)


def _with_references(curves: Curves) -> pd.DataFrame:
    """The rows, and the reference values as additional rows."""
    own = curves.references
    if not len(own):
        return curves.rows
    return pd.concat([curves.rows, own.assign(mean=own[COLUMN], std=np.nan)], ignore_index=True)


def _y_range(rows: pd.DataFrame, request: Request) -> tuple[float, float]:
    """The y-range: from 0, or from the lowest value of p_suc."""
    above = float((rows["mean"] + rows["std"].fillna(0)).max())
    if request.kind == "accuracy":
        return 0.0, min(1.0, ceil(10 * above + 0.1) / 10)
    if request.kind == "total-cost":
        return 0.0, 1.05 * above or 1.0
    lowest = float((rows["mean"] - rows["std"].fillna(0)).min()) if request.kind == "p_suc" else 0.0
    depth = min(1.0, max(1.15 * (1 - lowest), 0.01))  # no curve goes below this
    return 1 - 1.02 * depth, 1 + 0.02 * depth


def _seed_count(line: str, groups: Sequence[Group]) -> str:
    """The number of seeds of a line for the legend; empty if complete, or if `_seed_note` already gives it."""
    own = [len(group.runs) for group in groups if group.line == line]
    if _seed_note(groups) or all(len(group.runs) == len(group.points) for group in groups if group.line == line):
        return ""
    count = str(own[0]) if len(set(own)) == 1 else f"{min(own)}–{max(own)}"
    return f" ({count} of {len(groups[0].points)} seeds)"


def _seed_note(groups: Sequence[Group]) -> str:
    """The number of seeds of the figure, if some are missing and all lines have the same number, or one line only."""
    counts = {len(group.runs) for group in groups}
    least, wanted = min(counts), len(groups[0].points)
    single_line = len({group.line for group in groups}) == 1
    if (len(counts) > 1 and not single_line) or least == wanted:
        return ""
    return f"{least if len(counts) == 1 else f'{least}–{max(counts)}'} of {wanted} seeds"


def _file_content(figure: Any, ending: str) -> bytes:
    """The bytes of the file, without dates and versions, so that the same runs give the same file."""
    file = BytesIO()
    no_metadata = {"pdf": {"CreationDate": None, "Producer": None, "Creator": None}, "png": {"Software": None}}
    figure.savefig(file, format=ending, dpi=200, metadata=no_metadata[ending])
    return file.getvalue()
