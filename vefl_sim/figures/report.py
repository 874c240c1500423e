"""A figure on screen: what is missing, the values at its marks, and the differences between its lines."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from vefl_sim.figures.drawing import Drawing, missing

_MOST = 12  # points that are missing are named; more are counted


def drawing_lines(drawing: Drawing, out: Path) -> Iterator[str]:
    """From how much it was drawn, what it says, and where it is."""
    done = sum(len(group.runs) for group in drawing.groups)
    wanted = sum(len(group.points) for group in drawing.groups)
    yield f"{drawing.name}: from {f'all {wanted}' if done == wanted else f'{done} of {wanted}'} points"
    yield from _missing_lines([*missing(drawing, out)])
    if drawing.text:
        yield from ["", *drawing.text.splitlines()]
    if len(drawing.marks):
        yield from _mark_lines(drawing.marks)
    yield from _scalar_lines(drawing)
    yield ""
    yield f"in {drawing.files[0].parent}: {', '.join(file.name for file in drawing.files)}"


def _missing_lines(titles: Sequence[str]) -> Iterator[str]:
    for title in titles[:_MOST]:
        yield f"  not there: {title}"
    if len(titles) > _MOST:
        yield f"  not there: {len(titles) - _MOST} more"


def _mark_lines(marks: pd.DataFrame) -> Iterator[str]:
    names = [_name(panel, line) for panel, line in zip(marks["panel"], marks["line"], strict=True)]
    width = max(map(len, names)) + 2
    heads = list(dict.fromkeys(marks["x"]))
    yield ""
    yield f"{'at':{width}}" + "".join(f"{head:>18g}" for head in heads)
    for name, own in marks.assign(name=names).groupby("name", sort=False):
        cells = own.set_index("x")
        yield f"{name:{width}}" + "".join(_spread(cells, head) for head in heads).rstrip()


def _spread(cells: pd.DataFrame, head: float) -> str:
    if head not in cells.index:
        return f"{'–':>18}"
    mean, std = float(cells["mean"].loc[head]), float(cells["std"].loc[head])
    return f"{_number(mean) + ('' if math.isnan(std) else f' ±{_number(std)}'):>18}"


def _scalar_lines(drawing: Drawing) -> Iterator[str]:
    """Means over seeds ± their standard deviation, and how far from the first line, with a confidence interval."""
    scalars = drawing.scalars.dropna(subset="value")
    if not len(scalars) or drawing.text:
        return
    apart = drawing.differences.set_index(["panel", "line"])
    names = [_name(panel, line) for panel, line in zip(scalars["panel"], scalars["line"], strict=True)]
    width = max(map(len, names)) + 2
    yield ""
    yield f"{scalars['figure'].iloc[0]}: mean ± s.d. over seeds; difference to the first, paired by seed, ± half of the"
    yield "95 % confidence interval; * where that excludes 0"
    for (panel, line), own in scalars.groupby(["panel", "line"], sort=False):
        told = f"{_number(own['value'].mean()):>10}{_half(own['value'].std(ddof=1)):>10}"
        if (panel, line) in apart.index:
            told += _difference(apart.loc[[(panel, line)]].iloc[0])
        yield f"{_name(str(panel), str(line)):{width}}{told}"


def _difference(row: pd.Series) -> str:
    if math.isnan(row["difference"]):
        return ""
    mark = "*" if row["differs"] else ""
    return f"{_number(row['difference'], '+'):>12}{_half(row['half_width']):>10}{mark}"


def _name(panel: str, line: str) -> str:
    return ", ".join(filter(None, [panel, line]))


def _half(value: float) -> str:
    return "" if math.isnan(value) else f"±{_number(value)}"


def _number(value: float, sign: str = "") -> str:
    """Four places for shares, fewer for what is larger."""
    digits = 4 if abs(value) < 10 else 1
    return f"{value:{sign}.{digits}f}"
