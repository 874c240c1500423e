"""The picture of a figure, in the paper's form: a line for the mean, a shaded strip for the standard deviation."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vefl_sim.comparison_figure import STYLE, legend_below, line_styles
from vefl_sim.errors import BadInput
from vefl_sim.figures.layout import Group
from vefl_sim.figures.measures import y_name
from vefl_sim.figures.names import SUBSCRIPT
from vefl_sim.figures.request import Request

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLE = STYLE | {"font.size": 8, "axes.axisbelow": True, "pdf.fonttype": 42, "svg.hashsalt": ""}
_COLUMN_IN, _PAGE_IN, _HEIGHT_IN = 3.5, 7.16, 2.3  # one and two columns of a journal
_STEPS = {"failure-rate": "mid", "sojourn": "pre", "p_suc": "pre", "cost": "post"}
_P_SUC = {"ordered": "of an ordered CV", "with-ineligible": "of a CV, ineligible as 0"}
_P_SUC |= {"rounds": "mean of a round", "rounds-with-ineligible": "mean of a round, ineligible as 0"}


def require_matplotlib() -> None:
    """It draws what is drawn."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise BadInput("Figures need matplotlib: pip install vefl_sim[report].") from None
    matplotlib.use("Agg")


def pictures(rows: pd.DataFrame, groups: Sequence[Group], request: Request, x_name: str) -> dict[str, bytes]:
    """The same picture by its endings; `x_name`: of the key that bars stand for."""
    require_matplotlib()
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys(rows["panel"]))
    lines = list(dict.fromkeys(group.line for group in groups))
    styles = dict(zip(lines, line_styles(lines), strict=True))
    with plt.rc_context(_STYLE):
        figure, places = plt.subplots(
            1, len(panels), sharey=True, squeeze=False, layout="constrained",
            figsize=(_COLUMN_IN if len(panels) == 1 else _PAGE_IN, _HEIGHT_IN),
        )  # fmt: skip
        for axes, panel in zip(places[0], panels, strict=True):
            _panel(axes, rows[rows["panel"] == panel], groups, request, styles)
            axes.set(xlabel=shown(_x_label(request, x_name)))
            axes.set_title(shown(panel), fontsize=8)
        _ranges(places[0], rows, request)
        if len(lines) > 1:
            handles = {line: styles[line]["handle"] for line in lines if "handle" in styles[line]}
            legend_below(figure, handles, {line: shown(line) + _seeds(line, groups) for line in handles}, points=7)
        if note := _note(groups):
            places[0][-1].set_title(note, loc="right", fontsize=7, color="0.4")
        if request.title:
            figure.suptitle(shown(request.title), fontsize=9)
        drawn = {ending: _saved(figure, ending) for ending in ("pdf", "png")}
        plt.close(figure)
    return drawn


def shown(text: str) -> str:
    """With symbols as symbols; a dollar sign that begins no formula is one."""
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(text)
    except ValueError:
        text = text.replace("$", r"\$")
    if "$" in text:
        return text
    return SUBSCRIPT.sub(r"$\1_{\\mathrm{\2}}$", text).replace("λ\u0304", r"$\bar{\lambda}$")


def _panel(
    axes: "Axes", rows: pd.DataFrame, groups: Sequence[Group], request: Request, styles: Mapping[str, dict[str, Any]]
) -> None:
    if any(group.bar for group in groups):
        _bars(axes, rows, groups, styles)
        return
    steps: Any = _STEPS.get(request.kind)
    for line, own in rows.groupby("line", sort=False):
        style = {key: value for key, value in styles[str(line)].items() if key != "handle"}
        style["lw"] *= 0.75  # the figure is small
        x, mean, std = (own[name].to_numpy(float) for name in ("x", "mean", "std"))
        how: Any = {"drawstyle": f"steps-{steps}"} if steps else {}
        if len(x) == 1:
            how["marker"] = "o"
        (styles[str(line)]["handle"],) = axes.plot(x, mean, **style | how)
        if not np.isnan(std).all():
            top = np.inf if request.kind == "total-cost" else 1.0
            strip = np.clip(mean - std, 0.0, top), np.clip(mean + std, 0.0, top)
            axes.fill_between(x, *strip, step=steps, color=style["color"], alpha=0.15, lw=0)


def _bars(axes: "Axes", rows: pd.DataFrame, groups: Sequence[Group], styles: Mapping[str, dict[str, Any]]) -> None:
    steps = list(dict.fromkeys(group.bar for group in groups))
    values = dict.fromkeys(_value(group.x) for group in groups)
    lines = [line for line in styles if line in set(rows["line"])]
    width = 0.8 / len(lines) if len(lines) > 1 else 0.55
    for place, line in enumerate(lines):
        own = rows[rows["line"] == line]
        at = [list(values).index(_value(x)) + (place - (len(lines) - 1) / 2) * width for x in own["x"]]
        error = own["std"].fillna(0.0).to_numpy(float)
        colour = styles[line]["color"] if len(lines) > 1 else "#3f6aa3"
        styles[line]["handle"] = axes.bar(
            at, own["mean"].to_numpy(float), 0.92 * width, yerr=error if error.any() else None, capsize=2.5,
            color=colour, hatch="///" if styles[line]["ls"] == "--" else None, edgecolor="white",
            error_kw={"lw": 1, "ecolor": "0.55"},
        )  # fmt: skip
    axes.set_xticks(range(len(steps)), [shown(value) for value in values])
    axes.grid(False, axis="x")


def _value(x: Any) -> str:
    return f"{x:.10g}" if isinstance(x, float) else str(x)


def _x_label(request: Request, x_name: str) -> str:
    if x_name:
        return x_name
    if request.kind == "p_suc":
        return f"x = p_suc, {_P_SUC[request.count]}"
    named = {"sojourn": "x = sojourn bound [s]", "cost": "x = cost of a round"}
    return named.get(request.kind) or ("simulated time [s]" if request.x == "time" else "round")


def _ranges(places: Sequence["Axes"], rows: pd.DataFrame, request: Request) -> None:
    """From 0, or from where something happens; what the user says goes."""
    from matplotlib.ticker import MaxNLocator

    places[0].set_ylabel(y_name(request))
    for axes in places:
        if request.x_scale == "log":
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
        elif request.kind != "total-cost" or request.x in ("round", "time"):
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=request.x != "time" and request.kind != "p_suc"))
        if request.kind in ("sojourn", "p_suc", "cost"):
            axes.margins(x=0.02)
        axes.set_ylim(*(request.y_range or _y_range(rows, request)))
        if request.x_range:
            axes.set_xlim(*request.x_range)


def _y_range(rows: pd.DataFrame, request: Request) -> tuple[float, float]:
    above = float((rows["mean"] + rows["std"].fillna(0)).max())
    if request.kind == "accuracy":
        return 0.0, min(1.0, ceil(10 * above + 0.1) / 10)
    if request.kind == "total-cost":
        return 0.0, 1.05 * above or 1.0
    lowest = float((rows["mean"] - rows["std"].fillna(0)).min()) if request.kind == "p_suc" else 0.0
    depth = min(1.0, max(1.15 * (1 - lowest), 0.01))  # nothing happens below
    return 1 - 1.02 * depth, 1 + 0.02 * depth


def _seeds(line: str, groups: Sequence[Group]) -> str:
    """How many seeds are in a line, if not all, and not in all lines as many."""
    own = [len(group.runs) for group in groups if group.line == line]
    if _note(groups) or all(len(group.runs) == len(group.points) for group in groups if group.line == line):
        return ""
    told = str(own[0]) if len(set(own)) == 1 else f"{min(own)}–{max(own)}"
    return f" ({told} of {len(groups[0].points)} seeds)"


def _note(groups: Sequence[Group]) -> str:
    """The same, if it holds for all lines, or if there is only one."""
    counts = {len(group.runs) for group in groups}
    least, wanted = min(counts), len(groups[0].points)
    alone = len({group.line for group in groups}) == 1
    if (len(counts) > 1 and not alone) or least == wanted:
        return ""
    return f"{least if len(counts) == 1 else f'{least}–{max(counts)}'} of {wanted} seeds"


def _saved(figure: Any, ending: str) -> bytes:
    """Without dates and versions: the same runs make the same file."""
    file = BytesIO()
    nothing = {"pdf": {"CreationDate": None, "Producer": None, "Creator": None}, "png": {"Software": None}}
    figure.savefig(file, format=ending, dpi=200, metadata=nothing[ending])
    return file.getvalue()
