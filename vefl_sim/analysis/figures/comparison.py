"""The figure of a comparison: cost per round, delivered share of the updates, and accuracy by round."""

import re
from collections.abc import Mapping, Sequence
from math import ceil, floor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vefl_sim.core.errors import BadInput
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Line = tuple[Sequence[Run], dict[str, Any]]
"""The runs of a variant, and the style of its line."""
_PANEL_IN = 4.2

_COLOURS = (
    "#22303c", "#c0392b", "#3f6aa3", "#2e9e5b", "#e0a100", "#7d3c98", "#17a2b8", "#e377c2", "#8c564b", "#8a97a6",
)  # fmt: skip
_DASHES = (("-", "--"), (":", "-."))
"""Line styles with and without constraints; the second pair is used when all colours are used."""
_UNCONSTRAINED = ", unconstrained"
_MARKUP = re.compile(r"[$\\{}_]|mathrm|bar")
"""Markup of formulas, which takes no space in the drawn text."""
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e8ecef",
}
"""Matplotlib settings of all figures with lines."""


def draw_comparison(comparison: Comparison) -> Path:
    """Write comparison.png next to the table; needs matplotlib."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise BadInput(
            "The figure needs matplotlib: pip install 'vefl_sim[report]' (the table is already written)."
        ) from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    by_label = comparison.by_label()
    lines = [*zip(by_label.values(), line_styles(list(by_label)), strict=True)]
    learnt = comparison.by_seed["accuracy"].notna().any()
    panels = (_costs, _successes, _accuracies)[: 2 + bool(learnt)]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(panels), figsize=(_PANEL_IN * len(panels), 3.5), layout="constrained")
        for panel, place in zip(panels, axes, strict=True):
            panel(place, lines)
        legend_below(figure, {str(line.get_label()): line for line in axes[0].get_lines()})
        figure.savefig(comparison.path / "comparison.png", dpi=130)
        plt.close(figure)
    return comparison.path / "comparison.png"


def line_styles(labels: Sequence[str]) -> list[dict[str, Any]]:
    """A line style for each label; a scheme without constraints has the same colour as with them, but is dashed.

    Later lines are thinner, so that a line that is covered by a later one is still visible at its edges.
    """
    schemes = list(dict.fromkeys(label.removesuffix(_UNCONSTRAINED) for label in labels))
    numbers = [divmod(schemes.index(label.removesuffix(_UNCONSTRAINED)), len(_COLOURS)) for label in labels]
    return [
        {
            "label": label,
            "color": _COLOURS[colour],
            "ls": _DASHES[cycle % len(_DASHES)][label.endswith(_UNCONSTRAINED)],
            "lw": width,
        }
        for label, (cycle, colour), width in zip(labels, numbers, np.linspace(2.4, 1.1, len(labels)), strict=True)
    ]


def legend_order(labels: Sequence[str]) -> list[str]:
    """Order of the legend: pairs with and without constraints first, then labels that have no counterpart."""
    pairs = [label for label in labels if label + _UNCONSTRAINED in labels]
    paired = [name for label in pairs for name in (label, label + _UNCONSTRAINED)]
    return paired + [label for label in labels if label not in paired]


def legend_below(
    figure: "Figure", by_label: Mapping[str, Any], shown: Mapping[str, str] | None = None, points: float = 9
) -> None:
    """Add a legend below the panels, in columns that do not separate a pair; the figure becomes higher by its height.

    `shown`: texts to show instead of the labels; `points`: the font size.
    """
    labels = legend_order(list(by_label))
    width_in, height_in = figure.get_size_inches()
    texts = [(shown or {}).get(label, label) for label in labels]
    longest = max(len(_MARKUP.sub("", text)) for text in texts)
    fitting = max(1, int(width_in / (points / 9 * (0.62 + 0.066 * longest))))
    rows = ceil(len(labels) / fitting)
    rows += rows % 2 and any(label + _UNCONSTRAINED in labels for label in labels)
    figure.set_size_inches(width_in, height_in + 0.2 * points / 9 * rows)
    figure.legend(
        [by_label[label] for label in labels], texts, ncols=ceil(len(labels) / rows),
        loc="outside lower center", frameon=False, handlelength=2.8, columnspacing=1.5, fontsize=points,
    )  # fmt: skip


def _costs(axes: "Axes", lines: Sequence[Line]) -> None:
    for runs, line in lines:
        cost = np.sort(np.concatenate([run.rounds["cost"].to_numpy(float) for run in runs]))
        axes.step(np.append(cost[:1], cost), np.arange(len(cost) + 1) / len(cost), where="post", **line)
    axes.set(
        title="CDF of the cost per round", xlabel="x = cost per round", ylabel="share of rounds ≤ x", ylim=(0, 1.02)
    )


def _successes(axes: "Axes", lines: Sequence[Line]) -> None:
    complete = [1.0]  # share of completely delivered updates, of each line
    for runs, line in lines:
        part = np.sort(np.concatenate([run.vehicles["delivered_fraction"].dropna().to_numpy(float) for run in runs]))
        axes.step(np.append(part, 1.0), 1 - np.arange(len(part) + 1) / max(len(part), 1), where="pre", **line)
        complete += [float(np.mean(part >= 1))] if len(part) else []
    bottom = max(0.0, floor(20 * (min(complete) - 0.01)) / 20)  # no curve goes below this
    axes.set(title="CCDF of the delivered share", xlabel="x = p_suc", ylabel="share of updates ≥ x")
    axes.set(xlim=(0, 1.01), ylim=(bottom, 1 + 0.02 * (1 - bottom)))


def accuracy_by_round(runs: Sequence[Run]) -> pd.DataFrame:
    """Mean and standard deviation of the accuracy over the runs, in the rounds in which all runs were evaluated."""
    each = [run.rounds.set_index("round")["accuracy"].astype(float) for run in runs]
    common = pd.concat(each, axis=1).dropna()
    return pd.DataFrame({"mean": common.mean(axis=1), "std": common.std(axis=1, ddof=1)})


def _accuracies(axes: "Axes", lines: Sequence[Line]) -> None:
    from matplotlib.ticker import MaxNLocator

    highest = 0.0
    for runs, line in lines:
        accuracy = accuracy_by_round(runs)
        mean, std = accuracy["mean"], accuracy["std"]
        axes.plot(accuracy.index, mean, **line)
        above = mean + std.fillna(0)
        if len(runs) > 1:
            axes.fill_between(accuracy.index, mean - std, above, color=line["color"], alpha=0.1, lw=0)
        highest = max(highest, above.max())
    seeds = max(len(runs) for runs, _ in lines)
    title = "Test accuracy" + (f", mean ± s.d. of {seeds} seeds" if seeds > 1 else "")
    axes.set(title=title, xlabel="round", ylim=(0, min(1.0, ceil(10 * highest + 0.1) / 10)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
