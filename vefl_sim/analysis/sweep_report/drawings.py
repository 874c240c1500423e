"""The figures of a page as SVG inside it: measures against the first swept key, curves by round, distributions."""

import re
from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from typing import TYPE_CHECKING, Any

from vefl_sim.analysis.figures.curves import CCDFS, curves
from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import measure_of, y_name
from vefl_sim.analysis.figures.names import axis_name, legend_title, with_symbols
from vefl_sim.analysis.figures.panel import Curves, draw_panel
from vefl_sim.analysis.figures.request import Request
from vefl_sim.analysis.figures.style import STYLE, legend_below
from vefl_sim.analysis.report.document import html
from vefl_sim.analysis.sweep_report.source import KINDS, VARIANT, SweepSource

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_LINES = 12
_SIZE_IN = (4.7, 3.0)
_NOT_DRAWN = re.compile(r'<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>| id="\w+_\d+"', re.DOTALL)
_STYLE_ATTRIBUTE = re.compile(r' style="([^"]*)"')
_GRID_COLOUR = str(STYLE["grid.color"])
_INK = re.compile(r'"(#000000|#22303c)"')
"""Colours that are the text colour of the page, so that they can be seen on a dark one."""


def drawings(source: SweepSource) -> Iterator[tuple[str, str]]:
    """Title and SVG of each figure but those of too many lines."""
    key = next((key for key in source.varying if key != VARIANT), "")  # the first that is swept
    for kind in (kind for kind in KINDS if kind in source.by_seed):
        measure = measure_of(kind, source.metric)
        if key:
            yield from _drawn(source, Request(kind=kind, x=key), f"{measure.number}, by {axis_name(key, {})}")
        if kind in ("accuracy", "loss"):
            yield from _drawn(source, Request(kind=kind), f"{measure.in_round}, by round")
        elif measure.sample and not key:
            share = "CCDF" if kind in CCDFS else "CDF"
            yield from _drawn(source, Request(kind=kind), f"{measure.sample}, {share}")


def figures_html(drawn: Iterable[tuple[str, str]]) -> str:
    """Figures, given by title and SVG, in two columns."""
    figures = (f"<figure class='curve'><h3>{html(title)}</h3>{svg}</figure>" for title, svg in drawn)
    return f"<div class='panels two'>{''.join(figures)}</div>"


def _drawn(source: SweepSource, request: Request, title: str) -> Iterator[tuple[str, str]]:
    groups = [*_groups(source, request)]
    if len({group.line for group in groups}) > MAX_LINES:
        return
    legend = legend_title((key for key in source.varying if key != request.x), {})
    drawn = Curves(
        curves(groups, request), groups, request, axis_name(request.x, {}) if request.x else "", legend=legend
    )
    if len(drawn.rows):
        yield title, _svg(drawn, title)


def _groups(source: SweepSource, request: Request) -> Iterator[Group]:
    """One group per line, or per line and x against a swept key; keys that change together with it name no line."""
    key = request.x
    together = {key, *(other for other in source.varying if is_function(source, other, key))} if key else set()
    numbers = bool(key) and all(not isinstance(point.parameters[key], str) for point in source.points)
    for own in source.groups.values():
        first = own[0]
        runs: dict[int, Any] = {number: p.measured for number, p in enumerate(own) if p.measured}
        value = first.parameters[key] if key else None
        label, x = (source.label(key, first), value if numbers else str(value)) if key else ("", None)
        yield Group((), (), source.title(first, frozenset(together)), label, x, (), runs)


def is_function(source: SweepSource, other: str, key: str) -> bool:
    """Whether each value of a key has one value of the other, as in lists that vary together."""
    pairs = {(point.parameters[key], point.parameters[other]) for point in source.points}
    return other != VARIANT and len(pairs) == len({value for value, _ in pairs})


def _svg(drawn: Curves, title: str) -> str:
    def draw(figure: "Figure", axes: "Axes") -> None:
        handles = draw_panel(axes, drawn.rows, drawn)
        axes.set_ylabel(with_symbols(y_name(drawn.request, drawn.metric)))
        if len(handles) > 1:
            legend_below(figure, handles, {line: with_symbols(line) for line in handles}, 8, with_symbols(drawn.legend))

    return drawn_svg(draw, title)


def drawn_svg(draw: "Callable[[Figure, Axes], None]", title: str) -> str:
    """What a function draws on new axes, as SVG for a page that allows no style attributes.

    Texts are shapes, so that none can act as markup.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE | {"axes.axisbelow": True, "svg.fonttype": "path", "svg.hashsalt": title}):
        figure = Figure(figsize=_SIZE_IN, layout="constrained")
        draw(figure, figure.subplots())
        file = StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = _NOT_DRAWN.sub("", text[text.index("<svg") :])
    text = _INK.sub('"currentColor"', _STYLE_ATTRIBUTE.sub(_attributes, text))
    text = text.replace(f'stroke="{_GRID_COLOUR}"', 'class="grid"')
    width, height = (72 * side for side in figure.get_size_inches())
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{html(title)}" fill="currentColor" '
        f'stroke-linejoin="round">{text[text.index(">") + 1 :]}'
    )


def _attributes(style: "re.Match[str]") -> str:
    """The properties of a style attribute as attributes of their own."""
    properties = (part.split(":", 1) for part in style[1].split(";") if ":" in part)
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in properties)
