"""Draw figures from Python, as the command `figure` does, and the figure of a comparison."""

from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from vefl_sim.analysis.figures.chart import Chart
from vefl_sim.analysis.figures.drawing import draw_figure
from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import y_name
from vefl_sim.analysis.figures.names import with_symbols
from vefl_sim.analysis.figures.panel import STYLE, draw_panel, legend_below
from vefl_sim.analysis.figures.request import FigureKind, Request
from vefl_sim.analysis.files import picture, write_files
from vefl_sim.analysis.overview import draw_overview
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.comparison import Comparison
from vefl_sim.sweep.points import Sweep, load_sweep
from vefl_sim.sweep.results.result import RunMeasurements
from vefl_sim.sweep.results.store import FOLDER, Store


def draw(
    what: Run | Comparison | Sweep | str | Path, out: str | Path = "runs", *, to: str | Path | None = None
) -> list[Path]:
    """Draw the figure of a sweep or comparison, or the overview of a run; returns the files.

    `what`: what `simulate`, `compare` or `load_sweep` returns, or the path of a TOML file or of a run directory. A
    sweep is drawn from its finished runs in `out`; for a TOML file, points without a run are taken from the folder
    `results` next to it. `to`: folder to write to, by default `out`/figures/<name>, or the directory of the run.
    """
    folder = Path(to) if to is not None else None
    if isinstance(what, Comparison):
        return [draw_comparison(what, folder)]
    if isinstance(what, (str, Path)) and Path(what).is_dir():
        what = Run(what)
    if isinstance(what, Run):
        return draw_overview(what, folder)
    if isinstance(what, Sweep):
        return [*draw_figure(what, Path(out), folder).files]
    stored = Path(what).parent / FOLDER
    store = Store(stored) if stored.is_dir() else None
    return [*draw_figure(load_sweep(what), Path(out), folder, store).files]


def draw_comparison(comparison: Comparison, folder: Path | None = None) -> Path:
    """Draw cost, delivered share and accuracy or other metric, in comparison.png next to the table or in `folder`."""
    titles: dict[FigureKind, str] = {"cost": "CDF of the cost per round", "p_suc": "CCDF of the delivered share"}
    if comparison.metric:
        titles["accuracy"] = f"Test {comparison.metric.name}"
    charts = {title: chart for kind, title in titles.items() if len((chart := compared(comparison, kind)).rows)}
    with rc_context(STYLE):
        figure = Figure(figsize=(4.2 * len(charts), 3.5), layout="constrained")
        lines: dict[str, Any] = {}
        for axes, (title, chart) in zip(figure.subplots(1, len(charts), squeeze=False)[0], charts.items(), strict=True):
            lines |= draw_panel(axes, chart)
            axes.set(title=title, ylabel=with_symbols(y_name(chart.request, chart.metric)))
        legend_below(figure, lines)
        if len(comparison.seeds) > 1:
            figure.suptitle(f"mean ± s.d. of {len(comparison.seeds)} seeds", fontsize=9)
        (path,) = write_files({".png": picture(figure, ".png")}, "comparison", folder or comparison.path)
    return path


def compared(comparison: Comparison, kind: FigureKind) -> Chart:
    """One line per variant: mean and standard deviation over the seeds."""
    runs = comparison.by_label().items()
    groups = [Group("", label, dict(enumerate(map(RunMeasurements, own)))) for label, own in runs]
    return Chart(Request(kind=kind), groups)
