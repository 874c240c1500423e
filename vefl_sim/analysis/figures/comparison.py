"""The figure of a comparison: cost per round, delivered share of the updates, and accuracy or other metric by round."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from vefl_sim.analysis.figures.curves import curves
from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import y_name
from vefl_sim.analysis.figures.names import with_symbols
from vefl_sim.analysis.figures.panel import Curves, draw_panel
from vefl_sim.analysis.figures.request import FigureKind, Request
from vefl_sim.analysis.figures.style import STYLE, legend_below, require_matplotlib
from vefl_sim.sweep.comparison import Comparison
from vefl_sim.sweep.results.measurements import RunMeasurements

_TITLES: dict[FigureKind, str] = {
    "cost": "CDF of the cost per round",
    "p_suc": "CCDF of the delivered share",
    "accuracy": "Test accuracy",
}
_PANEL_IN = 4.2


def draw_comparison(comparison: Comparison, folder: Path | None = None) -> Path:
    """Write comparison.png next to the table, or into `folder`, without empty panels; needs matplotlib."""
    require_matplotlib()
    import matplotlib.pyplot as plt

    kinds = [kind for kind in _TITLES if kind != "accuracy" or comparison.metric]
    panels = [panel for kind in kinds if len((panel := compared(comparison, kind)).rows)]
    dashed = {line: max(panel.covered[line] for panel in panels) for line in panels[0].lines}
    with plt.rc_context(STYLE):
        size = _PANEL_IN * len(panels), 3.5
        figure, places = plt.subplots(1, len(panels), figsize=size, layout="constrained", squeeze=False)
        lines: dict[str, Any] = {}
        for axes, panel in zip(places[0], panels, strict=True):
            lines |= draw_panel(axes, panel.rows, replace(panel, dashed=dashed))
            axes.set(title=_title(panel), ylabel=with_symbols(y_name(panel.request, panel.metric)))
        legend_below(figure, lines)
        if len(comparison.seeds) > 1:
            figure.suptitle(f"mean ± s.d. of {len(comparison.seeds)} seeds", fontsize=9)
        path = (folder or comparison.path) / "comparison.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130)
        plt.close(figure)
    return path


def _title(panel: Curves) -> str:
    if panel.request.kind == "accuracy" and panel.metric:
        return f"Test {panel.metric.name}"
    return _TITLES[panel.request.kind]


def compared(comparison: Comparison, kind: FigureKind) -> Curves:
    """The curves of one kind, one line per variant: mean and standard deviation over the seeds."""
    request = Request(kind=kind)
    groups = [
        Group((), (), label, "", None, (), {seed: RunMeasurements(run) for seed, run in enumerate(runs)})
        for label, runs in comparison.by_label().items()
    ]
    return Curves(curves(groups, request), groups, request, "")
