"""Draw figures from Python, as the command `figure` does."""

from pathlib import Path

from vefl_sim.analysis.figures.comparison import draw_comparison
from vefl_sim.analysis.figures.drawing import draw_figure
from vefl_sim.analysis.overview import draw_overview
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.comparison import Comparison
from vefl_sim.sweep.points import Sweep, load_sweep
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
