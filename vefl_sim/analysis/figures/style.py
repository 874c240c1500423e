"""The style of all figures with lines: their colours, dashes and markers, and a legend below the panels."""

import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from vefl_sim.core.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = (
    "#22303c", "#c0392b", "#3f6aa3", "#2e9e5b", "#e0a100", "#7d3c98", "#17a2b8", "#e377c2", "#8c564b", "#8a97a6",
)  # fmt: skip
_DASHES = (("-", "--"), (":", "-."))
"""Line styles with and without constraints; the second pair is used when all colours are used."""
_MARKERS = ("s", "^", "D", "v", "P", "X", "<", "*", ">", "p", "h")
"""One more than colours, so that they repeat after 110 lines; "o" is for reference values."""
_COVERING: tuple[Any, ...] = ((0, (4, 2.5)), (0, (1.2, 2.2)), (0, (7, 2, 1.2, 2)))
"""Dashes of lines that lie on another line, which is seen through the gaps."""
_UNCONSTRAINED = ", unconstrained"
_MARKUP = re.compile(r"[$\\{}_]|mathrm|mathcal|bar")
"""Markup of formulas, which takes no space in the drawn text."""
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e8ecef",
}
"""Matplotlib settings."""


def require_matplotlib() -> None:
    """Select a matplotlib backend without a screen; raise BadInput if matplotlib is not installed."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise BadInput("Pictures need matplotlib: install it with pip install 'vefl_sim[report]'.") from None
    matplotlib.use("Agg")


def line_styles(labels: Sequence[str], covered: Mapping[str, int] | None = None) -> list[dict[str, Any]]:
    """A line style for each label; a scheme without constraints has the same colour as with them, but is dashed.

    Later lines are thinner, so that a line that is covered by a later one is still visible at its edges; `covered`:
    how many earlier lines a line lies on, by label, which makes it dashed.
    """
    schemes = list(dict.fromkeys(label.removesuffix(_UNCONSTRAINED) for label in labels))
    numbers = [divmod(schemes.index(label.removesuffix(_UNCONSTRAINED)), len(_COLOURS)) for label in labels]
    return [
        {
            "label": label,
            "color": _COLOURS[colour],
            "ls": _dashes((covered or {}).get(label, 0), _DASHES[cycle % 2][label.endswith(_UNCONSTRAINED)]),
            "lw": width,
            "marker": _MARKERS[place % len(_MARKERS)],
        }
        for place, (label, (cycle, colour), width) in enumerate(
            zip(labels, numbers, np.linspace(2.4, 1.1, len(labels)), strict=True)
        )
    ]


def _dashes(covered: int, usual: str) -> Any:
    return _COVERING[(covered - 1) % len(_COVERING)] if covered and usual == "-" else usual


def legend_order(labels: Sequence[str]) -> list[str]:
    """Order of the legend: pairs with and without constraints first, then labels that have no counterpart."""
    pairs = [label for label in labels if label + _UNCONSTRAINED in labels]
    paired = [name for label in pairs for name in (label, label + _UNCONSTRAINED)]
    return paired + [label for label in labels if label not in paired]


def legend_below(
    figure: "Figure",
    by_label: Mapping[str, Any],
    shown: Mapping[str, str] | None = None,
    points: float = 9,
    title: str = "",
) -> None:
    """Add a legend below the panels, in columns that do not separate a pair; the figure becomes higher by its height.

    `shown`: texts to show instead of the labels; `points`: the font size; `title`: above the labels.
    """
    labels = legend_order(list(by_label))
    width_in, height_in = figure.get_size_inches()
    texts = [(shown or {}).get(label, label) for label in labels]
    longest = max(len(_MARKUP.sub("", text)) for text in texts)
    fitting = max(1, int(width_in / (points / 9 * (0.62 + 0.066 * longest))))
    rows = ceil(len(labels) / fitting)
    rows += rows % 2 and any(label + _UNCONSTRAINED in labels for label in labels)
    figure.set_size_inches(width_in, height_in + 0.2 * points / 9 * (rows + bool(title)))
    figure.legend(
        [by_label[label] for label in labels], texts, ncols=ceil(len(labels) / rows),
        loc="outside lower center", frameon=False, handlelength=2.8, columnspacing=1.5, fontsize=points,
        title=title or None, title_fontsize=points,
    )  # fmt: skip
