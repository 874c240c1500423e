"""The table of final accuracies or other metrics, as in the paper's Table I: as CSV, Markdown and LaTeX."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import pandas as pd

from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import metric_in, scalar
from vefl_sim.analysis.figures.names import SUBSCRIPT
from vefl_sim.analysis.figures.request import Request
from vefl_sim.experiment.plugins import declaration

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "α": r"$\alpha$", "δ": r"$\delta$", "\0": r"$\bar\lambda$",
    "λ": r"$\lambda$", "μ": r"$\mu$", "Ξ": r"$\Xi$", "–": "--", "±": r"$\pm$", "|": r"$|$", "<": r"$<$", ">": r"$>$",
}  # fmt: skip


@dataclass(frozen=True)
class TableCell:
    """Mean and standard deviation over the finished seeds."""

    mean: float
    std: float
    seeds: int
    wanted: int  # seeds of the sweep
    best: bool = False  # the best mean of the constrained schemes in its row

    def text(self, bold: Callable[[str], str], plus_minus: str) -> str:
        """The cell as in the paper, for example 0.8177 ± 0.0064, with the number of seeds if some are missing."""
        if np.isnan(self.mean):
            return "–"
        mean = bold(f"{self.mean:.4f}") if self.best else f"{self.mean:.4f}"
        spread = "" if np.isnan(self.std) else f" {plus_minus} {self.std:.4f}"
        return mean + spread + ("" if self.seeds == self.wanted else f" ({self.seeds} of {self.wanted})")


@dataclass(frozen=True)
class Grid:
    """A table of cells by row and column."""

    headings: tuple[str, ...]  # of the columns that name a row
    columns: tuple[str, ...]
    rows: Mapping[tuple[str, ...], Mapping[str, TableCell]]

    def csv_rows(self) -> pd.DataFrame:
        """The table in long form: one row per cell."""
        rows = [
            dict(zip(self.headings, names, strict=True))
            | {"line": column, "mean": cell.mean, "std": cell.std, "seeds": cell.seeds, "best": cell.best}
            for names, cells in self.rows.items()
            for column, cell in cells.items()
        ]
        return pd.DataFrame(rows)

    def markdown(self) -> str:
        """The table in Markdown, with the best cells in bold."""
        head = [*self.headings, *self.columns]
        lines = [_markdown_row(head), "|" + "---|" * len(head)]
        for names, cells in self.rows.items():
            texts = (
                cells[column].text(lambda text: f"**{text}**", "±") if column in cells else "–"
                for column in self.columns
            )
            lines.append(_markdown_row([*names, *texts]))
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        """The table as a LaTeX tabular without packages; a name that repeats from row to row is written once."""
        sides = "l" * len(self.headings) + "c" * len(self.columns)
        lines = [f"\\begin{{tabular}}{{{sides}}}", "\\hline"]
        lines += [_latex_row([_latex_text(name) for name in (*self.headings, *self.columns)]), "\\hline"]
        before: tuple[str, ...] = ()
        for names, cells in self.rows.items():
            if before and names[:1] != before[:1] and len(names) > 1:
                lines.append("\\hline")
            shown = ["" if names[: i + 1] == before[: i + 1] else _latex_text(name) for i, name in enumerate(names)]
            lines.append(_latex_row([*shown, *(_latex_cell(cells.get(column)) for column in self.columns)]))
            before = names
        return "\n".join([*lines, "\\hline", "\\end{tabular}"]) + "\n"


def grid(groups: Sequence[Group], headings: Sequence[str], request: Request) -> Grid:
    """Build the table: its rows are the panels of the groups, its columns their lines."""
    rows: dict[tuple[str, ...], dict[str, TableCell]] = {}
    for group in groups:
        rows.setdefault(group.row, {})[group.line] = _cell(group, request)
    constrained = {group.line for group in groups if is_constrained(group)}
    metric = metric_in(run for group in groups for run in group.runs.values())
    best = min if metric and not metric.higher_is_better else max
    marked = {names: _with_best(cells, constrained, best) for names, cells in rows.items()}
    return Grid(tuple(headings), tuple(dict.fromkeys(group.line for group in groups)), marked)


def is_constrained(group: Group) -> bool:
    """Whether the scheme is limited by the resources of the CVs and the network."""
    scheme = group.points[0].experiment.scheme
    return scheme.constrained and not declaration("scheme.kind", scheme.kind, "trains_centrally", False)


def _cell(group: Group, request: Request) -> TableCell:
    known = [value for run in group.runs.values() if not np.isnan(value := scalar(run, request))]
    mean = float(np.mean(known)) if known else float("nan")
    std = float(np.std(known, ddof=1)) if len(known) > 1 else float("nan")
    return TableCell(mean, std, len(known), len(group.points))


def _with_best(cells: Mapping[str, TableCell], constrained: set[str], best_of: Any) -> dict[str, TableCell]:
    """Mark the best cells of a row; means that are equal in the printed digits are both best."""
    rivals = [round(cell.mean, 4) for line, cell in cells.items() if line in constrained and not np.isnan(cell.mean)]
    best = best_of(rivals, default=float("nan")) if len(rivals) > 1 else float("nan")
    return {
        line: replace(cell, best=line in constrained and round(cell.mean, 4) == best) for line, cell in cells.items()
    }


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(cell: TableCell | None) -> str:
    text = "–" if cell is None else cell.text(lambda mean: f"\\textbf{{{mean}}}", r"$\pm$")
    return text.replace("–", "--")


def _latex_text(text: str) -> str:
    """Escape text for LaTeX and write symbols as formulas; the bar above λ is a separate character that follows it."""
    pieces = SUBSCRIPT.split(text.replace("λ\u0304", "\0"))
    plain = ["".join(_LATEX.get(sign, sign) for sign in piece) for piece in pieces[::3]]
    symbols = [f"${letter}_{{\\mathrm{{{below}}}}}$" for letter, below in zip(pieces[1::3], pieces[2::3], strict=True)]
    return "".join(chain.from_iterable(zip_longest(plain, symbols, fillvalue="")))
