"""The figure of a comparison: cost per round, how much of the updates arrived, and accuracy by round."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vefl_sim.comparison import Comparison
from vefl_sim.errors import BadInput
from vefl_sim.results import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#22303c", "#c0392b", "#3f6aa3", "#2e9e5b", "#e0a100", "#7d3c98", "#7aa0cf", "#8a97a6")
_STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e8ecef",
}


def draw(comparison: Comparison) -> Path:
    """Write comparison.png beside the table; needs matplotlib."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise BadInput("The figure needs matplotlib: install vefl_sim[report]; the table is written.") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    learnt = any(compared.run.summary["last_accuracy"] is not None for compared in comparison.runs)
    panels = (_costs, _successes, _accuracies)[: 2 + learnt]
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.9), layout="constrained")
        for number, compared in enumerate(comparison.runs):
            line = {"color": _COLOURS[number % len(_COLOURS)], "ls": ("-", "--", ":")[number // len(_COLOURS) % 3]}
            for panel, place in zip(panels, axes, strict=True):
                panel(place, compared.run, line | {"label": compared.label})
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
        figure.savefig(comparison.path / "comparison.png", dpi=130)
        plt.close(figure)
    return comparison.path / "comparison.png"


def _costs(axes: "Axes", run: Run, line: dict[str, Any]) -> None:
    cost = np.sort(run.rounds["cost"].to_numpy(float))
    axes.step(np.append(cost[:1], cost), np.arange(len(cost) + 1) / len(cost), where="post", **line)
    axes.set(title="Cost of a round", xlabel="paid", ylabel="share of rounds up to", ylim=(0, 1.02))


def _successes(axes: "Axes", run: Run, line: dict[str, Any]) -> None:
    part = np.sort(run.vehicles["delivered_fraction"].dropna().to_numpy(float))
    axes.step(np.append(part, 1.0), 1 - np.arange(len(part) + 1) / max(len(part), 1), where="pre", **line)
    axes.set(title="Delivered part of an update", xlabel="p_suc", ylabel="share of updates from")
    axes.set(xlim=(0, 1.01), ylim=(0, 1.02))


def _accuracies(axes: "Axes", run: Run, line: dict[str, Any]) -> None:
    from matplotlib.ticker import MaxNLocator

    seen = run.rounds.dropna(subset=["accuracy"])
    axes.plot(seen["round"], seen["accuracy"], **line)
    axes.set(title="Test accuracy", xlabel="round", ylim=(0, 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
