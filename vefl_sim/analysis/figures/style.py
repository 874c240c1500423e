"""The style of all figures with lines: colours, dashes and markers, a legend below the panels, and their files."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from math import ceil
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from vefl_sim.analysis.figures.names import with_symbols

_COLOURS = (
    "#22303c", "#c0392b", "#3f6aa3", "#2e9e5b", "#e0a100", "#7d3c98", "#17a2b8", "#e377c2", "#8c564b", "#8a97a6",
)  # fmt: skip
_MARKERS = ("s", "^", "D", "v", "P", "X", "<", "*", ">", "p", "h")
"""One more than colours, so that they repeat after 110 lines; "o" is for reference values."""
_UNCONSTRAINED = ", unconstrained"
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e8ecef",
}
"""Matplotlib settings."""
PRINT_STYLE: Any = STYLE | {"font.size": 8, "pdf.fonttype": 42}
"""Of figures with the width of a journal column or page."""


def line_styles(labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A line style for each label; a scheme without constraints has the same colour as with them, but is dashed.

    Later lines are thinner, so that a line that is covered by a later one is still visible at its edges.
    """
    schemes = list(dict.fromkeys(label.removesuffix(_UNCONSTRAINED) for label in labels))
    return {
        label: {
            "label": label,
            "color": _COLOURS[schemes.index(label.removesuffix(_UNCONSTRAINED)) % len(_COLOURS)],
            "ls": "--" if label.endswith(_UNCONSTRAINED) else "-",
            "lw": width,
            "marker": _MARKERS[place % len(_MARKERS)],
            "ms": 3.6,
            "mec": "white",
            "mew": 0.4,
        }
        for place, (label, width) in enumerate(zip(labels, np.linspace(1.8, 0.8, len(labels)), strict=True))
    }


def legend_below(
    figure: Figure,
    by_label: Mapping[str, Any],
    shown: Mapping[str, str] | None = None,
    points: float = 9,
    title: str = "",
) -> None:
    """Add a legend below the panels, in as many columns as fit; the figure becomes higher by its height.

    `shown`: texts to show instead of the labels; `points`: the font size; `title`: above the labels.
    """
    texts = [(shown or {}).get(label, label) for label in by_label]
    width_in, height_in = figure.get_size_inches()
    size = points / 9
    columns = max(1, int(width_in / (size * (0.62 + 0.066 * max(map(len, texts))))))
    rows = ceil(len(texts) / columns)
    figure.set_size_inches(width_in, height_in + 0.2 * size * (rows + bool(title)))
    figure.legend(
        [*by_label.values()], [*map(with_symbols, texts)], ncols=ceil(len(texts) / rows),
        loc="outside lower center", frameon=False, handlelength=2.8, columnspacing=1.5, fontsize=points,
        title=with_symbols(title) or None, title_fontsize=points,
    )  # fmt: skip


def file_contents(figure: Figure, dpi: int = 200) -> dict[str, bytes]:
    """The PDF and the PNG by ending, without dates and versions, so that the same runs give the same files."""
    no_metadata = {".pdf": {"CreationDate": None, "Producer": None, "Creator": None}, ".png": {"Software": None}}
    contents = {}
    for ending, metadata in no_metadata.items():
        file = BytesIO()
        figure.savefig(file, format=ending[1:], dpi=dpi, metadata=metadata)
        contents[ending] = file.getvalue()
    return contents
