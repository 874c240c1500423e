"""Prints a figure: missing points, the values at its marks, and the differences between its lines."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from vefl_sim.analysis.figures.band import band_text, band_words, with_band
from vefl_sim.analysis.figures.drawing import Drawing, missing
from vefl_sim.analysis.figures.measures import decimals, difference_decimals, measure_of, y_name
from vefl_sim.analysis.figures.reference import COLUMN, line_name
from vefl_sim.analysis.figures.request import Band
from vefl_sim.sweep.power import seeds_sentence

_MOST = 12  # missing points that are listed; more are only counted


def drawing_lines(drawing: Drawing, out: Path, most: int = _MOST) -> Iterator[str]:
    """Number of points, missing points (at most `most` are listed), values, differences, and files of a figure."""
    done = sum(len(group.runs) for group in drawing.groups)
    wanted = sum(len(group.points) for group in drawing.groups)
    count = f"all {wanted}" if done == wanted else f"{done} of {wanted}"
    yield f"{drawing.name}: from {count} points{_sources(drawing)}"
    yield from _limited("missing", [*missing(drawing, out)], most)
    yield from _limited(
        "stale, because the code gives other results now, or was not probed",
        [point.title for point in drawing.stale],
        most,
    )
    yield from _limited("without this measure", [point.title for point in drawing.without_value], most)
    yield from _limited("not used", drawing.problems, most)
    if drawing.text:
        yield from ["", *drawing.text.splitlines()]
    if len(drawing.marks):
        yield from _mark_lines(drawing)
    yield from _scalar_lines(drawing)
    yield ""
    yield f"in {drawing.files[0].parent}: {', '.join(file.name for file in drawing.files)}"


def _sources(drawing: Drawing) -> str:
    """How many points come from runs, and how many from stored results."""
    sources = [run.source for group in drawing.groups for run in group.runs.values()]
    stored, stale = sources.count("result"), len(drawing.stale)
    if not stored:
        return ""
    stale_note = f", {stale} of them stale" if stale else ""
    return f": {sources.count('run')} from runs, {stored} from stored results{stale_note}"


def _limited(what: str, titles: Sequence[str], most: int) -> Iterator[str]:
    """The first titles, and how many more there are."""
    for title in titles[:most]:
        yield f"  {what}: {title}"
    if len(titles) > most:
        yield f"  {what}: {len(titles) - most} more"


def _mark_lines(drawing: Drawing) -> Iterator[str]:
    """A table of the values at the marks: one row per line, one column per mark."""
    marks = drawing.marks
    least = 4 if drawing.request.is_distribution else measure_of(drawing.request.kind, drawing.metric).digits
    digits = decimals(marks["mean"], least)
    names = [line_name(panel, line) for panel, line in zip(marks["panel"], marks["line"], strict=True)]
    width = max(map(len, names)) + 2
    heads = sorted(set(marks["x"]))
    reference = ", [reference]" if COLUMN in marks else ""
    yield ""
    band = drawing.request.band
    yield f"{y_name(drawing.request, drawing.metric)}, {band_words(drawing.request)} over seeds{reference}, at x ="
    by_name = marks.assign(name=names).set_index("x").groupby("name", sort=False)
    cells = {str(name): [_mark_cell(own, head, band, digits) for head in heads] for name, own in by_name}
    column = max(28 if COLUMN in marks else 18, *(len(cell) + 2 for own in cells.values() for cell in own))
    yield f"{'':{width}}" + "".join(f"{head:>{column}g}" for head in heads)
    for name, own in cells.items():
        yield f"{name:{width}}" + "".join(f"{cell:>{column}}" for cell in own).rstrip()


def _mark_cell(cells: pd.DataFrame, head: float, band: Band, digits: int) -> str:
    if head not in cells.index:
        return "–"
    row = cells.loc[[head]].iloc[0]
    ours = "–" if math.isnan(row["mean"]) else f"{row['mean']:.{digits}f} {band_text(row, band, digits)}".rstrip()
    reference = row.get(COLUMN, math.nan)
    return ours if math.isnan(reference) else f"{ours} [{reference:.{digits}f}]"


def _scalar_lines(drawing: Drawing) -> Iterator[str]:
    """The mean over seeds of each line with its band, and its difference to the first line or to compare_to."""
    scalars, request = drawing.scalars.dropna(subset="value"), drawing.request
    if not len(scalars) or drawing.text:
        return
    digits = measure_of(request.kind, drawing.metric).digits
    by_line = scalars.set_index("seed").groupby(["panel", "line"], sort=False)["value"]
    bands = {
        (str(panel), str(line)): with_band(own.to_frame().T, request.band).iloc[0] for (panel, line), own in by_line
    }
    of_means = decimals((band["mean"] for band in bands.values()), digits)
    differences = drawing.differences.set_index(["panel", "line"])
    width = max(len(line_name(*key)) for key in bands) + 2
    references = list(dict.fromkeys(drawing.differences["reference"]))
    reference = references[0] if len(references) == 1 else request.compare_to or "the first line of each panel"
    name = scalars["figure"].iloc[0]
    yield ""
    yield f"{name}: {band_words(request, is_paired=False)} over seeds"
    if references:
        interval = "± half-width of the 95 % confidence interval; * if it excludes 0"
        yield f"and difference to {reference}, paired by seed, {interval}"
    for key, band in bands.items():
        text = f"{band['mean']:>10.{of_means}f} {band_text(band, request.band, of_means):>9}"
        if key in differences.index:
            text += _difference(differences.loc[[key]].iloc[0], digits)
        yield f"{line_name(*key):{width}}{text}".rstrip()
    if sentence := seeds_sentence(drawing.differences, name, request.detect):
        yield sentence


def _difference(row: pd.Series, least: int) -> str:
    if math.isnan(row["difference"]):
        return ""
    digits = difference_decimals(row, least)
    mark = "*" if row["differs"] else ""
    half = "" if math.isnan(row["half_width"]) else f"±{row['half_width']:.{digits}f}"
    return f" {row['difference']:>+11.{digits}f} {half:>9}{mark}"
