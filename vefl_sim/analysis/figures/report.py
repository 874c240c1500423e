"""Prints a figure: missing points, the values at its marks, and the differences between its lines."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from vefl_sim.analysis.figures.drawing import Drawing, missing
from vefl_sim.analysis.figures.measures import measure_of, y_name
from vefl_sim.analysis.figures.reference import COLUMN, line_name

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
    digits = 4 if drawing.request.is_distribution else measure_of(drawing.request.kind, drawing.metric).digits
    names = [line_name(panel, line) for panel, line in zip(marks["panel"], marks["line"], strict=True)]
    width = max(map(len, names)) + 2
    heads = sorted(set(marks["x"]))
    reference = ", [reference]" if COLUMN in marks else ""
    yield ""
    yield f"{y_name(drawing.request, drawing.metric)}, mean ± s.d. over seeds{reference}, at x ="
    yield f"{'':{width}}" + "".join(f"{head:>{_column_width(marks)}g}" for head in heads)
    for name, own in marks.assign(name=names).groupby("name", sort=False):
        cells = own.set_index("x")
        yield f"{name:{width}}" + "".join(_mark_cell(cells, head, digits) for head in heads).rstrip()


def _mark_cell(cells: pd.DataFrame, head: float, digits: int) -> str:
    width = _column_width(cells)
    if head not in cells.index:
        return f"{'–':>{width}}"
    mean, std = float(cells["mean"].loc[head]), float(cells["std"].loc[head])
    ours = "–" if math.isnan(mean) else f"{mean:.{digits}f} {_half_width(std, digits)}".rstrip()
    if COLUMN not in cells:
        return f"{ours:>{width}}"
    other = float(cells[COLUMN].loc[head])
    reference = "" if math.isnan(other) else f" [{other:.{digits}f}]"
    return f"{ours + reference:>{width}}"


def _column_width(marks: pd.DataFrame) -> int:
    return 28 if COLUMN in marks else 18


def _scalar_lines(drawing: Drawing) -> Iterator[str]:
    """The mean ± standard deviation over seeds of each line, and its difference to the first line."""
    scalars = drawing.scalars.dropna(subset="value")
    if not len(scalars) or drawing.text:
        return
    digits = measure_of(drawing.request.kind, drawing.metric).digits
    differences = drawing.differences.set_index(["panel", "line"])
    names = [line_name(panel, line) for panel, line in zip(scalars["panel"], scalars["line"], strict=True)]
    width = max(map(len, names)) + 2
    references = list(dict.fromkeys(drawing.differences["reference"]))
    reference = references[0] if len(references) == 1 else "the first line of each panel"
    yield ""
    yield f"{scalars['figure'].iloc[0]}: mean ± s.d. over seeds"
    if references:
        interval = "± half-width of the 95 % confidence interval; * if it excludes 0"
        yield f"and difference to {reference}, paired by seed, {interval}"
    for (panel, line), own in scalars.groupby(["panel", "line"], sort=False):
        text = f"{own['value'].mean():>10.{digits}f}{_half_width(own['value'].std(ddof=1), digits):>10}"
        if (panel, line) in differences.index:
            text += _difference(differences.loc[[(panel, line)]].iloc[0], digits)
        yield f"{line_name(str(panel), str(line)):{width}}{text}"


def _difference(row: pd.Series, digits: int) -> str:
    if math.isnan(row["difference"]):
        return ""
    mark = "*" if row["differs"] else ""
    return f"{row['difference']:>+12.{digits}f}{_half_width(row['half_width'], digits):>10}{mark}"


def _half_width(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"±{value:.{digits}f}"
