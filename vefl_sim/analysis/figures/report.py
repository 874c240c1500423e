"""Prints a figure: missing points, the values at its marks, and the differences between its lines."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from vefl_sim.analysis.figures.curves import REFERENCE, band_text, band_words, line_name, numbers, with_band
from vefl_sim.analysis.figures.drawing import Drawing
from vefl_sim.analysis.figures.measures import decimals, difference_decimals, measure_of, y_name
from vefl_sim.analysis.figures.request import Band
from vefl_sim.sweep.points import Point
from vefl_sim.sweep.power import seeds_sentence

_MOST = 12  # missing points that are listed; more are only counted


def drawing_lines(drawing: Drawing, out: Path, most: int = _MOST) -> Iterator[str]:
    """Number of points, missing points (at most `most` are listed), values, differences, and files of a figure."""
    sources = [run.source for group in drawing.groups for run in group.runs.values()]
    done, stored, wanted = len(sources), sources.count("result"), len(sources) + len(drawing.missing)
    stale = f", {len(drawing.stale)} of them stale" if drawing.stale else ""
    origin = f": {done - stored} from runs, {stored} from stored results{stale}" if stored else ""
    yield f"{drawing.name}: from {f'all {wanted}' if done == wanted else f'{done} of {wanted}'} points{origin}"
    reported = {
        "missing": [f"{point.title} ({_state(point, out)})" for point in drawing.missing],
        "stale, because the code gives other results now, or was not probed": [point.title for point in drawing.stale],
        "without this measure": [point.title for point in drawing.without_value],
        "not used": drawing.problems,
    }
    for what, titles in reported.items():
        yield from (f"  {what}: {title}" for title in titles[:most])
        if len(titles) > most:
            yield f"  {what}: {len(titles) - most} more"
    if drawing.text:
        yield from ["", *drawing.text.splitlines()]
    else:
        yield from _mark_lines(drawing)
        yield from _number_lines(drawing)
    yield ""
    yield f"in {drawing.files[0].parent}: {', '.join(file.name for file in drawing.files)}"


def _state(point: Point, out: Path) -> str:
    run = point.run(out)
    if run and run.is_done:
        return f"damaged: run the sweep again, or move {run.path} away"
    return run.state if run else "not started"


def _mark_lines(drawing: Drawing) -> Iterator[str]:
    """A table of the values at the marks: one row per line, one column per mark."""
    marks, request = drawing.marks, drawing.request
    if not len(marks):
        return
    least = 4 if request.is_distribution else measure_of(request.kind, drawing.metric).digits
    digits = decimals(marks["mean"], least)
    reference = ", [reference]" if REFERENCE in marks else ""
    names = [line_name(panel, line) for panel, line in zip(marks["panel"], marks["line"], strict=True)]
    texts = marks.assign(name=names, text=[_mark(row, request.band, digits) for _, row in marks.iterrows()])
    table = texts.pivot(index="name", columns="x", values="text").reindex([*dict.fromkeys(names)]).fillna("–")
    yield ""
    yield f"{y_name(request, drawing.metric)}, mean{band_words(request)} over seeds{reference}, at x ="
    yield from _table_lines([["", *(f"{x:g}" for x in table.columns)], *map(list, table.itertuples())])


def _mark(row: pd.Series, band: Band, digits: int) -> str:
    ours = "–" if math.isnan(row["mean"]) else f"{row['mean']:.{digits}f} {band_text(row, band, digits)}".rstrip()
    reference = row.get(REFERENCE, math.nan)
    return ours if math.isnan(reference) else f"{ours} [{reference:.{digits}f}]"


def _number_lines(drawing: Drawing) -> Iterator[str]:
    """The mean over seeds of each line with its band, and its difference to the first line or to compare_to."""
    request, measure = drawing.request, measure_of(drawing.request.kind, drawing.metric)
    known = {(group.panel_name, group.title): own for group in drawing.groups if len(own := numbers(group, request))}
    bands = {name: with_band(own.to_frame().T, request.band).iloc[0] for name, own in known.items()}
    if not bands:
        return
    digits = decimals((band["mean"] for band in bands.values()), measure.digits)
    differences = {(row["panel"], row["line"]): row for _, row in drawing.differences.iterrows()}
    yield ""
    yield f"{measure.number}: mean{band_words(request, is_paired=False)} over seeds"
    if references := list(dict.fromkeys(drawing.differences["reference"])):
        reference = references[0] if len(references) == 1 else request.compare_to or "the first line of each panel"
        interval = "± half-width of the 95 % confidence interval; * if it excludes 0"
        yield f"and difference to {reference}, paired by seed, {interval}"
    rows = []
    for name, band in bands.items():
        cells = [line_name(*name), f"{band['mean']:.{digits}f}", band_text(band, request.band, digits)]
        rows.append([*cells, *_difference(differences.get(name), measure.digits)])
    yield from _table_lines(rows)
    if sentence := seeds_sentence(drawing.differences, measure.number, request.detect):
        yield sentence


def _difference(row: pd.Series | None, least: int) -> list[str]:
    if row is None or math.isnan(row["difference"]):
        return ["", ""]
    digits = difference_decimals(row, least)
    half = "" if math.isnan(row["half_width"]) else f"±{row['half_width']:.{digits}f}"
    return [f"{row['difference']:+.{digits}f}", half + "*" * bool(row["differs"])]


def _table_lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table of text: the first column left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *cells in rows:
        aligned = (f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join([f"{first:{widths[0]}}", *aligned]).rstrip()
