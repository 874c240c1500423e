"""Draws a figure as in the paper: lines for the mean, shaded areas for the standard deviation or another band.

Against a swept key it has points with error bars, or bars for totals.
"""

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from vefl_sim.analysis.figures.band import band_note
from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import y_name
from vefl_sim.analysis.figures.names import with_symbols
from vefl_sim.analysis.figures.panel import Curves, draw_panel
from vefl_sim.analysis.figures.style import STYLE, legend_below, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRINT_STYLE = STYLE | {"font.size": 8, "axes.axisbelow": True, "pdf.fonttype": 42, "svg.hashsalt": ""}
COLUMN_IN, PAGE_IN, HEIGHT_IN = 3.5, 7.16, 2.3  # widths of one and two journal columns, and the height


def pictures(curves: Curves) -> dict[str, bytes]:
    """Draw the figure; returns the content of the files by their ending."""
    require_matplotlib()
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys(curves.rows["panel"]))
    with plt.rc_context(PRINT_STYLE):
        figure, places = plt.subplots(
            1, len(panels), sharey=True, squeeze=False, layout="constrained",
            figsize=(COLUMN_IN if len(panels) == 1 else PAGE_IN, HEIGHT_IN),
        )  # fmt: skip
        handles: dict[str, Any] = {}
        for axes, panel in zip(places[0], panels, strict=True):
            rows = curves.rows[curves.rows["panel"] == panel]
            handles |= draw_panel(axes, rows, curves)
            axes.set_title(with_symbols(panel), loc="left", fontsize=8)  # the right side is for a note
        places[0][0].set_ylabel(with_symbols(y_name(curves.request, curves.metric)))
        _notes(figure, places[0], curves, handles)
        drawn = {ending: file_content(figure, ending) for ending in ("pdf", "png")}
        plt.close(figure)
    return drawn


def _notes(figure: "Figure", places: Sequence["Axes"], curves: Curves, handles: Mapping[str, Any]) -> None:
    """Add the legend, the title, the number of seeds if some are missing, and what band and hollow markers mean."""
    if len(curves.lines) > 1:
        own = {line: handles[line] for line in curves.lines if line in handles}
        shown = {line: with_symbols(line) + _seed_count(line, curves.groups) for line in own}
        title = "; ".join(filter(None, [curves.legend, band_note(curves.request)]))
        legend_below(figure, own, shown, points=7, title=with_symbols(title))
    band = band_note(curves.request) if len(curves.lines) == 1 else ""
    markers = "○ reference" if len(curves.references) else ""
    if note := ", ".join(filter(None, [_seed_note(curves.groups), band, markers])):
        places[-1].set_title(note, loc="right", fontsize=7, color="0.4")
    if curves.request.title:
        figure.suptitle(with_symbols(curves.request.title), fontsize=9)


def _seed_count(line: str, groups: Sequence[Group]) -> str:
    """The number of seeds of a line for the legend; empty if complete, or if `_seed_note` already gives it."""
    own = [len(group.runs) for group in groups if group.line == line]
    if _seed_note(groups) or all(len(group.runs) == len(group.points) for group in groups if group.line == line):
        return ""
    count = str(own[0]) if len(set(own)) == 1 else f"{min(own)}–{max(own)}"
    return f" ({count} of {len(groups[0].points)} seeds)"


def _seed_note(groups: Sequence[Group]) -> str:
    """The number of seeds of the figure, if some are missing and all lines have the same number, or one line only."""
    counts = {len(group.runs) for group in groups}
    least, wanted = min(counts), len(groups[0].points)
    single_line = len({group.line for group in groups}) == 1
    if (len(counts) > 1 and not single_line) or least == wanted:
        return ""
    return f"{least if len(counts) == 1 else f'{least}–{max(counts)}'} of {wanted} seeds"


def file_content(figure: Any, ending: str) -> bytes:
    """The bytes of the file, without dates and versions, so that the same runs give the same file."""
    file = BytesIO()
    no_metadata = {"pdf": {"CreationDate": None, "Producer": None, "Creator": None}, "png": {"Software": None}}
    figure.savefig(file, format=ending, dpi=200, metadata=no_metadata[ending])
    return file.getvalue()
