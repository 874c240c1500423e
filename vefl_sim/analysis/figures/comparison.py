"""The figure of a comparison: cost per round, delivered share of the updates, and accuracy or other metric by round."""

from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from vefl_sim.analysis.figures.curves import curves
from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import y_name
from vefl_sim.analysis.figures.names import with_symbols
from vefl_sim.analysis.figures.panel import Curves, draw_panel
from vefl_sim.analysis.figures.request import FigureKind, Request
from vefl_sim.analysis.figures.style import STYLE, legend_below
from vefl_sim.sweep.comparison import Comparison
from vefl_sim.sweep.results.result import RunMeasurements

_PANEL_IN = (4.2, 3.5)


def draw_comparison(comparison: Comparison, folder: Path | None = None) -> Path:
    """Write comparison.png next to the table, or into `folder`, without empty panels."""
    titles: dict[FigureKind, str] = {"cost": "CDF of the cost per round", "p_suc": "CCDF of the delivered share"}
    if comparison.metric:
        titles["accuracy"] = f"Test {comparison.metric.name}"
    panels = {title: panel for kind, title in titles.items() if len((panel := compared(comparison, kind)).rows)}
    with rc_context(STYLE):
        figure = Figure(figsize=(_PANEL_IN[0] * len(panels), _PANEL_IN[1]), layout="constrained")
        places = figure.subplots(1, len(panels), squeeze=False)[0]
        lines: dict[str, Any] = {}
        for axes, (title, panel) in zip(places, panels.items(), strict=True):
            lines |= draw_panel(axes, panel.rows, panel)
            axes.set(title=title, ylabel=with_symbols(y_name(panel.request, panel.metric)))
        legend_below(figure, lines)
        if len(comparison.seeds) > 1:
            figure.suptitle(f"mean ± s.d. of {len(comparison.seeds)} seeds", fontsize=9)
        path = (folder or comparison.path) / "comparison.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130)
    return path


def compared(comparison: Comparison, kind: FigureKind) -> Curves:
    """The curves of one kind, one line per variant: mean and standard deviation over the seeds."""
    request = Request(kind=kind)
    groups = [
        Group((), (), label, "", None, (), {seed: RunMeasurements(run) for seed, run in enumerate(runs)})
        for label, runs in comparison.by_label().items()
    ]
    return Curves(curves(groups, request), groups, request, "")
