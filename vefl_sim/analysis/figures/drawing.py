"""Draws the figure of a sweep, writes its files, and reports its numbers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vefl_sim.analysis.figures.chart import REFERENCE, Chart, band_text, band_words, line_name, with_band
from vefl_sim.analysis.figures.layout import groups, require_drawable
from vefl_sim.analysis.figures.measures import BY_METRIC, decimals, difference_decimals, difference_texts, y_name
from vefl_sim.analysis.figures.names import axis_name, heading, legend_title
from vefl_sim.analysis.figures.tables import Table, grid
from vefl_sim.core.errors import BadInput, VeflError
from vefl_sim.sweep.paired import seeds_sentence
from vefl_sim.sweep.points import Point, Sweep
from vefl_sim.sweep.results.store import Store

_MOST = 12  # missing points that are listed; more are only counted


class NothingToDraw(BadInput):
    """A figure of which no point is finished or stored."""


class IncompleteFigure(VeflError):
    """A figure that was drawn without some of its points: exit code 1."""


@dataclass(frozen=True)
class Drawing:
    """A figure that was drawn: its data and its files."""

    name: str
    chart: Chart
    files: tuple[Path, ...]
    text: str = ""  # the table in Markdown, if figure.kind = "table" or "effects"
    problems: Sequence[str] = ()  # stored results that cannot be read, and why

    @property
    def missing(self) -> list[Point]:
        """The points that are neither finished nor stored."""
        return [point for group in self.chart.groups for point in group.points if point.seed not in group.runs]

    @property
    def incomplete(self) -> str:
        """A sentence about the number of missing points; empty if there are none."""
        wanted, lacking = sum(len(group.points) for group in self.chart.groups), len(self.missing)
        are = "is" if lacking == 1 else "are"
        sentence = f"{self.name}: its figure is incomplete: {lacking} of {wanted} points {are} missing (listed above)."
        return sentence if lacking else ""


def draw_figure(sweep: Sweep, out: Path, folder: Path | None = None, store: Store | None = None) -> Drawing:
    """Draw from the finished runs in `out`, or else from stored results; write to `folder` or out/figures/<name>."""
    request, plan = require_drawable(sweep)
    own = groups(sweep, request, plan, out, store)
    if not any(group.runs for group in own):
        stored = f" or stored in {store.folder}" if store is not None else ""
        raise NothingToDraw(
            f"{sweep.name}: none of its {len(sweep.points)} points is done in {out}{stored}: run its file first with "
            "python -m vefl_sim sweep and the same --set, --seeds and --out."
        )
    x_name = axis_name(plan.x.key, request.labels) if plan.x else ""
    chart = Chart(request, own, x_name, legend_title([dimension.key for dimension in plan.lines], request.labels))
    _require_values(sweep, chart)
    from matplotlib import rc_context  # takes time to import

    from vefl_sim.analysis.figures.effects import draw_effects, effects_of
    from vefl_sim.analysis.figures.panel import PRINT_STYLE, draw_chart
    from vefl_sim.analysis.files import pictures, write_files

    tables, content = {"_differences.csv": chart.differences}, {}
    table: Table | None = None
    with rc_context(PRINT_STYLE):
        if request.kind == "effects":
            effects = effects_of(chart, plan)
            content, table = pictures(draw_effects(effects)), effects.table()
            tables = {".csv": effects.contrasts, "_shares.csv": effects.factorial.shares.reset_index()}
        elif request.kind == "table":
            tables[".csv"], table = grid(chart, [heading(dimension.key, request.labels) for dimension in plan.panels])
        else:
            content = pictures(draw_chart(chart))
            tables |= {".csv": chart.rows} | ({"_marks.csv": chart.marks} if len(chart.marks) else {})
    text = table.markdown() if table else ""
    content |= {".md": text.encode(), ".tex": table.latex().encode()} if table else {}
    content |= {ending: str(rows.to_csv(index=False)).encode() for ending, rows in tables.items()}
    measured = [request.measure] if "measure" in request.model_fields_set else []
    stem = "_".join(filter(None, [sweep.name, request.kind, *measured, request.x.replace(".", "-")]))
    files = write_files(content, stem, folder or out / "figures" / sweep.name)
    return Drawing(sweep.name, chart, tuple(files), text, [] if store is None else [*store.problems])


def _require_values(sweep: Sweep, chart: Chart) -> None:
    """Raise BadInput if no run has the measure, or if runs of different metrics would be compared."""
    request, kind = chart.request, chart.request.measured.kind
    key = "kind" if request.measured is request else "measure"
    runs = [run for group in chart.groups for run in group.runs.values()]
    metrics = {run.metric.name: run.metric for run in runs if run.rounds["loss"].notna().any()}
    errors = [metric.name for metric in metrics.values() if not metric.is_share]
    if len(metrics) > 1 and kind in BY_METRIC:
        problem = f"its runs have different metrics ({', '.join(metrics)}; learning.loss), which cannot be compared"
    elif len(chart.rows) if key == "kind" else any(map(len, chart.numbers)):
        return
    elif kind == "failure-rate" and errors:
        problem = f"its runs have no accuracy: they predict numbers, and are judged by their {errors[0]}"
    elif request.needs_learning:
        problem = f"its runs have no {kind}: they do not train a model (learning.kind)"
    elif kind == "delay":
        problem = "no update was delivered, or the runs are stored results, which have no delays"
    else:
        problem = "nobody got an order"
    raise BadInput(
        f'{sweep.name}: {problem}, so that figure.{key} = "{kind}" cannot be drawn: choose another, for example '
        '"cost", "energy", "sojourn" or "total-cost".'
    )


def drawing_lines(drawing: Drawing, out: Path, most: int = _MOST) -> Iterator[str]:
    """Number of points, missing points (at most `most` are listed), values, differences, and files of a figure."""
    chart = drawing.chart
    found = [(point, g.runs[point.seed]) for g in chart.groups for point in g.points if point.seed in g.runs]
    done, stored = len(found), sum(run.source == "result" for _, run in found)
    wanted, stale = done + len(drawing.missing), [point.title for point, run in found if run.stale]
    origin = f": {done - stored} from runs, {stored} from stored results" if stored else ""
    origin += f", {len(stale)} of them stale" if stale else ""
    yield f"{drawing.name}: from {f'all {wanted}' if done == wanted else f'{done} of {wanted}'} points{origin}"
    reported = {
        "missing": [f"{point.title} ({_state(point, out)})" for point in drawing.missing],
        "stale, because the code gives other results now, or was not probed": stale,
        "without this measure": [
            point.title
            for group, known in zip(chart.groups, chart.numbers, strict=True)
            for point in group.points
            if point.seed in group.runs and point.seed not in known.index
        ],
        "not used": drawing.problems,
    }
    for what, titles in reported.items():
        yield from (f"  {what}: {title}" for title in titles[:most])
        if len(titles) > most:
            yield f"  {what}: {len(titles) - most} more"
    yield ""
    if drawing.text:
        yield from drawing.text.splitlines()
    else:
        yield from _mark_lines(chart)
        yield from _number_lines(chart)
    yield ""
    yield f"in {drawing.files[0].parent}: {', '.join(file.name for file in drawing.files)}"


def _state(point: Point, out: Path) -> str:
    run = point.run(out)
    if run and run.is_done:
        return f"damaged: run the sweep again, or move {run.path} away"
    return run.state if run else "not started"


def _mark_lines(chart: Chart) -> Iterator[str]:
    """A table of the values at the marks: one row per line, one column per mark."""
    marks, request = chart.marks, chart.request
    if not len(marks):
        return
    digits = decimals(marks["mean"], 4 if request.is_distribution else chart.measure.digits)
    cells: dict[str, dict[float, str]] = {}
    for _, row in marks.iterrows():
        ours = "–" if math.isnan(row["mean"]) else f"{row['mean']:.{digits}f} {band_text(row, request.band, digits)}"
        reference = row.get(REFERENCE, math.nan)
        published = "" if math.isnan(reference) else f" [{reference:.{digits}f}]"
        cells.setdefault(line_name(row["panel"], row["line"]), {})[row["x"]] = ours.rstrip() + published
    xs = sorted(set(marks["x"]))
    reference = ", [reference]" if REFERENCE in marks else ""
    yield f"{y_name(request, chart.metric)}, mean{band_words(request)} over seeds{reference}, at x ="
    rows = [[name, *(own.get(x, "–") for x in xs)] for name, own in cells.items()]
    yield from table_lines([["", *(f"{x:g}" for x in xs)], *rows])
    yield ""


def _number_lines(chart: Chart) -> Iterator[str]:
    """The mean over seeds of each line with its band, and its difference to the first line or to compare_to."""
    request, measure = chart.request, chart.measure
    known = zip(chart.groups, chart.numbers, strict=True)
    bands = {(g.panel, g.title): with_band(own.to_frame().T, request.band).iloc[0] for g, own in known if len(own)}
    if not bands:
        return
    digits = decimals((band["mean"] for band in bands.values()), measure.digits)
    differences = {(row["panel"], row["line"]): row for _, row in chart.differences.iterrows()}
    yield f"{measure.number}: mean{band_words(request, is_paired=False)} over seeds"
    if references := list(dict.fromkeys(chart.differences["reference"])):
        reference = references[0] if len(references) == 1 else request.compare_to or "the first line of each panel"
        interval = "± half-width of the 95 % confidence interval; * if it excludes 0"
        yield f"and difference to {reference}, paired by seed, {interval}"
    rows = []
    for name, band in bands.items():
        row = differences.get(name)
        difference = ("", "") if row is None else difference_texts(row, difference_decimals(row, measure.digits))
        own = f"{band['mean']:.{digits}f}", band_text(band, request.band, digits)
        rows.append([line_name(*name), *own, *difference])
    yield from table_lines(rows)
    if sentence := seeds_sentence(chart.differences, measure.number, request.detect):
        yield sentence


def table_lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table of text: the first column left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *cells in rows:
        aligned = (f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join([f"{first:{widths[0]}}", *aligned]).rstrip()
