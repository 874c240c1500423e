"""A figure on screen: what is missing, the values at its marks, and the differences between its lines."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from vefl_sim.analysis.figures.drawing import Drawing, missing
from vefl_sim.analysis.figures.measures import y_name
from vefl_sim.analysis.figures.reference import COLUMN
from vefl_sim.analysis.figures.reference import name as _name

_MOST = 12  # points that are missing are named; more are counted


def drawing_lines(drawing: Drawing, out: Path, most: int = _MOST) -> Iterator[str]:
    """From how much it was drawn, what it says, and where it is; `most` points that are not in it are named."""
    done = sum(len(group.runs) for group in drawing.groups)
    wanted = sum(len(group.points) for group in drawing.groups)
    count = f"all {wanted}" if done == wanted else f"{done} of {wanted}"
    yield f"{drawing.name}: from {count} points{_sources(drawing)}"
    yield from _listed("not there", [*missing(drawing, out)], most)
    yield from _listed("stale, the code has changed such results since", [point.title for point in drawing.stale], most)
    yield from _listed("left out", drawing.problems, most)
    if drawing.text:
        yield from ["", *drawing.text.splitlines()]
    if len(drawing.marks):
        yield from _mark_lines(drawing)
    yield from _scalar_lines(drawing)
    yield ""
    yield f"in {drawing.files[0].parent}: {', '.join(file.name for file in drawing.files)}"


def _sources(drawing: Drawing) -> str:
    """How many points come from runs, and how many from stored results."""
    found = [run.source for group in drawing.groups for run in group.runs.values()]
    stored, stale = found.count("result"), len(drawing.stale)
    if not stored:
        return ""
    message = f", {stale} of them stale" if stale else ""
    return f": {found.count('run')} from runs, {stored} from stored results{message}"


def _listed(what: str, titles: Sequence[str], most: int) -> Iterator[str]:
    """The first few, and how many more there are."""
    for title in titles[:most]:
        yield f"  {what}: {title}"
    if len(titles) > most:
        yield f"  {what}: {len(titles) - most} more"


def _mark_lines(drawing: Drawing) -> Iterator[str]:
    marks, digits = drawing.marks, 1 if drawing.request.kind == "total-cost" else 4
    names = [_name(panel, line) for panel, line in zip(marks["panel"], marks["line"], strict=True)]
    width = max(map(len, names)) + 2
    heads = sorted(set(marks["x"]))
    beside = ", [of the reference]" if COLUMN in marks else ""
    yield ""
    yield f"{y_name(drawing.request)}, mean ± s.d. over seeds{beside}, at:"
    yield f"{'':{width}}" + "".join(f"{head:>{_column(marks)}g}" for head in heads)
    for name, own in marks.assign(name=names).groupby("name", sort=False):
        cells = own.set_index("x")
        yield f"{name:{width}}" + "".join(_spread(cells, head, digits) for head in heads).rstrip()


def _spread(cells: pd.DataFrame, head: float, digits: int) -> str:
    width = _column(cells)
    if head not in cells.index:
        return f"{'–':>{width}}"
    mean, std = float(cells["mean"].loc[head]), float(cells["std"].loc[head])
    ours = "–" if math.isnan(mean) else f"{mean:.{digits}f} {_half(std, digits)}".rstrip()
    if COLUMN not in cells:
        return f"{ours:>{width}}"
    other = float(cells[COLUMN].loc[head])
    message = "" if math.isnan(other) else f" [{other:.{digits}f}]"
    return f"{ours + message:>{width}}"


def _column(marks: pd.DataFrame) -> int:
    return 28 if COLUMN in marks else 18


def _scalar_lines(drawing: Drawing) -> Iterator[str]:
    """Means over seeds ± their standard deviation, and how far from the first line, with a confidence interval."""
    scalars = drawing.scalars.dropna(subset="value")
    if not len(scalars) or drawing.text:
        return
    digits = {"cost": 1, "total-cost": 1, "sojourn": 2}.get(drawing.request.kind, 4)
    apart = drawing.differences.set_index(["panel", "line"])
    names = [_name(panel, line) for panel, line in zip(scalars["panel"], scalars["line"], strict=True)]
    width = max(map(len, names)) + 2
    references = list(dict.fromkeys(drawing.differences["reference"]))
    reference = references[0] if len(references) == 1 else "the first that is there in each panel"
    yield ""
    yield f"{scalars['figure'].iloc[0]}: mean ± s.d. over seeds"
    if references:
        yield f"and difference to {reference}, paired by seed, ± half of the 95 % confidence interval; * if without 0"
    for (panel, line), own in scalars.groupby(["panel", "line"], sort=False):
        message = f"{own['value'].mean():>10.{digits}f}{_half(own['value'].std(ddof=1), digits):>10}"
        if (panel, line) in apart.index:
            message += _difference(apart.loc[[(panel, line)]].iloc[0], digits)
        yield f"{_name(str(panel), str(line)):{width}}{message}"


def _difference(row: pd.Series, digits: int) -> str:
    if math.isnan(row["difference"]):
        return ""
    mark = "*" if row["differs"] else ""
    return f"{row['difference']:>+12.{digits}f}{_half(row['half_width'], digits):>10}{mark}"


def _half(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"±{value:.{digits}f}"
