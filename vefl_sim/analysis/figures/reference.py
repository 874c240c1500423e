"""Reference values of a figure, mostly from the paper, at its marks and by line; and whether such lines exist."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.request import Request, nearest
from vefl_sim.core.errors import ExperimentError

COLUMN = "reference"


def require_lines(request: Request, groups: Sequence[Group]) -> None:
    """Check that compare_to names a line, and every reference a line with its panel if there are panels."""
    known = [line_name(", ".join(group.panel), group.line) for group in groups]
    problems = [
        f"figure.reference: {line!r} is not a line of this figure: did you mean {nearest(line, known)!r}?"
        for line in request.reference
        if line not in known
    ]
    lines = list(dict.fromkeys(filter(None, (name for group in groups for name in (group.line, group.title)))))
    if request.compare_to and request.compare_to not in lines:
        problems.append(
            f"figure.compare_to: {request.compare_to!r} is not a line of this figure: did you mean "
            f"{nearest(request.compare_to, lines)!r}?"
        )
    if problems:
        raise ExperimentError(problems)


def with_reference(marks: pd.DataFrame, request: Request, known: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Add reference values to the marks, including marks that our curves do not reach; `known`: panels and lines."""
    if not request.reference:
        return marks
    rows = [
        {"panel": panel, "line": line, "x": mark, COLUMN: value}
        for panel, line in dict.fromkeys(known)
        for mark, value in zip(request.marks, request.reference.get(line_name(panel, line), []), strict=False)
        if not np.isnan(value)
    ]
    references = pd.DataFrame(rows, columns=["panel", "line", "x", COLUMN])
    both = marks.merge(references, on=["panel", "line", "x"], how="outer")
    order = {place: number for number, place in enumerate(dict.fromkeys(known))}
    places = [order[panel, line] for panel, line in zip(both["panel"], both["line"], strict=True)]
    return both.assign(_place=places).sort_values(["_place", "x"], ignore_index=True).drop(columns="_place")


def line_name(panel: str, line: str) -> str:
    """The printed name of a line, with its panel."""
    return ", ".join(filter(None, [panel, line]))
