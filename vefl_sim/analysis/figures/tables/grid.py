"""A table of one number per run, as in the paper's Table I: as CSV, Markdown and LaTeX."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from vefl_sim.analysis.figures.band import band_for, band_text, band_words, with_band
from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import decimals, measure_of, metric_in, scalar
from vefl_sim.analysis.figures.request import Request
from vefl_sim.analysis.figures.tables.typeset import latex_table, latex_text, markdown_table
from vefl_sim.experiment.plugins import declaration
from vefl_sim.sweep.paired import difference

Text = Callable[[str], str]


@dataclass(frozen=True)
class TableCell:
    """The numbers of a cell by seed, and their mean with its band."""

    values: "pd.Series[float]"  # of the finished seeds
    band: pd.Series  # a row of `with_band`; empty without values
    wanted: int  # seeds of the sweep
    best: bool = False  # the best constrained scheme in its row, and better than the next one


@dataclass(frozen=True)
class Grid:
    """A table of cells by row and column."""

    headings: tuple[str, ...]  # of the columns that name a row
    columns: tuple[str, ...]
    rows: Mapping[tuple[str, ...], Mapping[str, TableCell]]
    request: Request
    digits: int
    number: str  # what the cells are about

    def csv_rows(self) -> pd.DataFrame:
        """The table in long form: one row per cell."""
        rows = [
            dict(zip(self.headings, names, strict=True))
            | {"line": column, "mean": None, "std": None}
            | cell.band.to_dict()
            | {"seeds": len(cell.values), "best": cell.best}
            for names, cells in self.rows.items()
            for column, cell in cells.items()
        ]
        return pd.DataFrame(rows)

    @property
    def note(self) -> str:
        """What the cells are, and what bold means."""
        return (
            f"{self.number}: {band_words(self.request)} over seeds; bold: the best of a row (of constrained schemes), "
            "if the 95 % confidence interval of its difference to the next best, paired by seed, excludes 0"
        )

    def markdown(self) -> str:
        """The table in Markdown."""
        rows = [
            [*names, *(self._text(cells.get(column), lambda text: f"**{text}**") for column in self.columns)]
            for names, cells in self.rows.items()
        ]
        return f"{markdown_table([*self.headings, *self.columns], rows)}\n{self.note}.\n"

    def latex(self) -> str:
        """The table as a LaTeX tabular."""
        head = [latex_text(name) for name in (*self.headings, *self.columns)]
        rows = [
            [*map(latex_text, names), *(self._latex_cell(cells.get(column)) for column in self.columns)]
            for names, cells in self.rows.items()
        ]
        return latex_table(head, rows, len(self.headings), self.note + ".")

    def _latex_cell(self, cell: TableCell | None) -> str:
        text = self._text(cell, lambda mean: f"\\textbf{{{mean}}}")
        return re.sub(r"(?<![-\d])-(?=\d)", "$-$", text.replace("–", "--").replace("±", r"$\pm$"))

    def _text(self, cell: TableCell | None, bold: Text) -> str:
        """A cell as in the paper, for example 0.8177 ± 0.0064, with the number of seeds if some are missing."""
        if cell is None or not len(cell.values):
            return "–"
        mean = f"{cell.band['mean']:.{self.digits}f}"
        around = band_text(cell.band, self.request.band, self.digits, "± ")
        count = "" if len(cell.values) == cell.wanted else f"({len(cell.values)} of {cell.wanted})"
        return " ".join(filter(None, [bold(mean) if cell.best else mean, around, count]))


def grid(groups: Sequence[Group], headings: Sequence[str], request: Request) -> Grid:
    """Build the table: its rows are the panels of the groups, its columns their lines."""
    measure = measure_of(request.measure, metric_in(run for group in groups for run in group.runs.values()))
    rows: dict[tuple[str, ...], dict[str, TableCell]] = {}
    for group in groups:
        rows.setdefault(group.row, {})[group.line] = _cell(group, groups, request)
    constrained = {group.line for group in groups if is_constrained(group)}
    marked = {names: _with_best(cells, constrained, measure.lower_is_better) for names, cells in rows.items()}
    means = [cell.band["mean"] for cells in rows.values() for cell in cells.values() if len(cell.values)]
    columns = tuple(dict.fromkeys(group.line for group in groups))
    return Grid(tuple(headings), columns, marked, request, decimals(means, measure.digits), measure.number)


def is_constrained(group: Group) -> bool:
    """Whether the scheme is limited by the resources of the CVs and the network."""
    scheme = group.points[0].experiment.scheme
    return scheme.constrained and not declaration("scheme.kind", scheme.kind, "trains_centrally", False)


def _cell(group: Group, groups: Sequence[Group], request: Request) -> TableCell:
    own = _numbers(group, request)
    if not len(own):
        return TableCell(own, pd.Series(dtype=float), len(group.points))
    band, reference = band_for(group, groups, request)
    compared = None if reference is None else _numbers(reference, request).to_frame().T
    return TableCell(own, with_band(own.to_frame().T, band, compared).iloc[0], len(group.points))


def _numbers(group: Group, request: Request) -> "pd.Series[float]":
    """The number of each run by seed, where it has one."""
    return pd.Series({seed: scalar(run, request.measured) for seed, run in group.runs.items()}, dtype=float).dropna()


def _with_best(cells: Mapping[str, TableCell], constrained: set[str], lower_is_better: bool) -> dict[str, TableCell]:
    """Mark the best cell of a row, if it is better than the next best beyond its confidence interval."""
    rivals = [line for line, cell in cells.items() if line in constrained and len(cell.values)]
    rivals.sort(key=lambda line: cells[line].band["mean"], reverse=not lower_is_better)
    is_best = False
    if len(rivals) > 1:
        paired = difference(cells[rivals[0]].values, cells[rivals[1]].values)  # of the seeds that both have
        is_best = bool(paired["differs"]) and (paired["difference"] < 0) == lower_is_better
    return {line: replace(cell, best=is_best and line == rivals[0]) for line, cell in cells.items()}
