"""The figure of a comparison: cost per round, how much of the updates arrived, and accuracy by round."""

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vefl_sim.comparison import Comparison
from vefl_sim.errors import BadInput
from vefl_sim.results import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = (
    "#22303c", "#c0392b", "#3f6aa3", "#2e9e5b", "#e0a100", "#7d3c98", "#17a2b8", "#e377c2", "#8c564b", "#8a97a6",
)  # fmt: skip
_DASHES = (("-", "--"), (":", "-."))
"""With and without constraints; the second pair once the colours are used up."""
_FREE = ", unconstrained"
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

    learnt = comparison.by_seed["accuracy"].notna().any()
    panels = (_costs, _successes, _accuracies)[: 2 + bool(learnt)]
    by_label = comparison.by_label()
    columns = _columns(by_label, 4.2 * len(panels))
    size = (4.2 * len(panels), 3.5 + 0.2 * ceil(len(by_label) / columns))
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(1, len(panels), figsize=size, layout="constrained")
        for (label, runs), line in zip(by_label.items(), line_styles(list(by_label)), strict=True):
            for panel, place in zip(panels, axes, strict=True):
                panel(place, runs, line | {"label": label})
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, handlelength=2.6)
        figure.savefig(comparison.path / "comparison.png", dpi=130)
        plt.close(figure)
    return comparison.path / "comparison.png"


def line_styles(labels: Sequence[str]) -> list[dict[str, Any]]:
    """A line for each label; the same colour with and without constraints, and then dashed."""
    families = list(dict.fromkeys(label.removesuffix(_FREE) for label in labels))
    places = [divmod(families.index(label.removesuffix(_FREE)), len(_COLOURS)) for label in labels]
    return [
        {"color": _COLOURS[colour], "ls": _DASHES[turn % len(_DASHES)][label.endswith(_FREE)], "lw": 1.4}
        for label, (turn, colour) in zip(labels, places, strict=True)
    ]


def _columns(labels: Sequence[str] | dict[str, Any], width_in: float) -> int:
    """How many labels fit beside each other."""
    return max(1, min(len(labels), 6, int(width_in / (0.75 + 0.072 * max(map(len, labels))))))


def _costs(axes: "Axes", runs: Sequence[Run], line: dict[str, Any]) -> None:
    cost = np.sort(np.concatenate([run.rounds["cost"].to_numpy(float) for run in runs]))
    axes.step(np.append(cost[:1], cost), np.arange(len(cost) + 1) / len(cost), where="post", **line)
    axes.set(title="Cost of a round", xlabel="paid", ylabel="share of rounds up to", ylim=(0, 1.02))


def _successes(axes: "Axes", runs: Sequence[Run], line: dict[str, Any]) -> None:
    parts = [run.vehicles["delivered_fraction"].dropna().to_numpy(float) for run in runs]
    part = np.sort(np.concatenate(parts))
    axes.step(np.append(part, 1.0), 1 - np.arange(len(part) + 1) / max(len(part), 1), where="pre", **line)
    axes.set(title="Delivered part of an update", xlabel="p_suc", ylabel="share of updates from")
    axes.set(xlim=(0, 1.01), ylim=(0, 1.02))


def accuracy_by_round(runs: Sequence[Run]) -> pd.DataFrame:
    """Mean and standard deviation over the runs, in the rounds that all of them evaluated."""
    each = [run.rounds.set_index("round")["accuracy"].astype(float) for run in runs]
    seen = pd.concat(each, axis=1).dropna()
    return pd.DataFrame({"mean": seen.mean(axis=1), "std": seen.std(axis=1, ddof=1)})


def _accuracies(axes: "Axes", runs: Sequence[Run], line: dict[str, Any]) -> None:
    from matplotlib.ticker import MaxNLocator

    seen = accuracy_by_round(runs)
    axes.plot(seen.index, seen["mean"], **line)
    if len(runs) > 1:
        low, high = seen["mean"] - seen["std"], seen["mean"] + seen["std"]
        axes.fill_between(seen.index, low, high, color=line["color"], alpha=0.1, lw=0)
    axes.set(title="Test accuracy", xlabel="round", ylim=(0, 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
