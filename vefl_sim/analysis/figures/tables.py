"""A table of one number per run, as in the paper's Table I: as CSV, Markdown and LaTeX."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from vefl_sim.analysis.figures.curves import band_for, band_text, band_words, numbers, with_band
from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import decimals, measure_of, metric_in
from vefl_sim.analysis.figures.names import formulas
from vefl_sim.analysis.figures.request import Request
from vefl_sim.experiment.plugins import declaration
from vefl_sim.sweep.paired import difference

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "α": r"$\alpha$", "δ": r"$\delta$", "λ": r"$\lambda$",
    "μ": r"$\mu$", "Ξ": r"$\Xi$", "–": "--", "±": r"$\pm$", "|": r"$|$", "<": r"$<$", ">": r"$>$", "→": r"$\to$",
    "×": r"$\times$", "−": "$-$", "≤": r"$\le$", "≥": r"$\ge$",
}  # fmt: skip
_COMMENT = str.maketrans({"±": "+-", "×": "x", "–": "-", "→": "->"})
Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Grid:
    """A table of numbers: its cells as rows, and their texts in Markdown by row and column."""

    headings: tuple[str, ...]  # of the columns that name a row
    columns: tuple[str, ...]
    cells: pd.DataFrame  # one row per cell
    texts: Mapping[tuple[str, ...], Mapping[str, str]]
    note: str  # what the cells are, and what bold means

    def markdown(self) -> str:
        """The table in Markdown."""
        return f"{markdown_table([*self.headings, *self.columns], self._rows())}\n{self.note}.\n"

    def latex(self) -> str:
        """The table as a LaTeX tabular."""
        names = len(self.headings)
        rows = [[*map(latex_text, row[:names]), *map(_latex_number, row[names:])] for row in self._rows()]
        head = [latex_text(name) for name in (*self.headings, *self.columns)]
        return latex_table(head, rows, names, self.note + ".")

    def _rows(self) -> list[list[str]]:
        return [[*names, *(own.get(column, "–") for column in self.columns)] for names, own in self.texts.items()]


def grid(groups: Sequence[Group], headings: Sequence[str], request: Request) -> Grid:
    """Build the table: its rows are the panels of the groups, its columns their lines."""
    measure = measure_of(request.measure, metric_in(run for group in groups for run in group.runs.values()))
    bands = [_band(group, groups, request) for group in groups]
    rows = [[group for group in groups if group.row == row] for row in dict.fromkeys(group.row for group in groups)]
    best = [_best(row, request, measure.lower_is_better) for row in rows]
    digits = decimals((band["mean"] for band in bands), measure.digits)
    cells = []
    texts: dict[tuple[str, ...], dict[str, str]] = {}
    for group, band in zip(groups, bands, strict=True):
        seeds, is_best = len(numbers(group, request)), any(group is own for own in best)
        names = dict(zip(headings, group.row, strict=True))
        cells.append(names | {"line": group.line} | band.to_dict() | {"seeds": seeds, "best": is_best})
        mean = f"{band['mean']:.{digits}f}"
        count = "" if seeds == len(group.points) else f"({seeds} of {len(group.points)})"
        text = [f"**{mean}**" if is_best else mean, band_text(band, request.band, digits, "± "), count]
        texts.setdefault(group.row, {})[group.line] = " ".join(filter(None, text)) if seeds else "–"
    note = (
        f"{measure.number}: mean{band_words(request)} over seeds; bold: the best of a row (of constrained schemes), "
        "if the 95 % confidence interval of its difference to the next best, paired by seed, excludes 0"
    )
    columns = tuple(dict.fromkeys(group.line for group in groups))
    return Grid(tuple(headings), columns, pd.DataFrame(cells), texts, note)


def _band(group: Group, groups: Sequence[Group], request: Request) -> pd.Series:
    """The mean of a cell with its band; NaN if it has no values."""
    band, reference = band_for(group, groups, request)
    compared = None if reference is None else numbers(reference, request).to_frame().T
    return with_band(numbers(group, request).to_frame().T, band, compared).iloc[0]


def _best(row: Sequence[Group], request: Request, lower_is_better: bool) -> Group | None:
    """The best constrained scheme of a row, if it is better than the next best beyond its confidence interval."""
    rivals = [group for group in row if _is_constrained(group) and len(numbers(group, request))]
    rivals.sort(key=lambda group: numbers(group, request).mean(), reverse=not lower_is_better)
    if len(rivals) < 2:
        return None
    paired = difference(numbers(rivals[0], request), numbers(rivals[1], request))  # of the seeds that both have
    return rivals[0] if paired["differs"] and (paired["difference"] < 0) == lower_is_better else None


def _is_constrained(group: Group) -> bool:
    """Whether the scheme is limited by the resources of the CVs and the network."""
    scheme = group.points[0].experiment.scheme
    return scheme.constrained and not declaration("scheme.kind", scheme.kind, "trains_centrally", False)


def _latex_number(text: str) -> str:
    bold = re.sub(r"\*\*(.*?)\*\*", r"\\textbf{\1}", text.replace("–", "--").replace("±", r"$\pm$"))
    return re.sub(r"(?<![-\d])-(?=\d)", "$-$", bold)


def markdown_table(head: Sequence[str], rows: Rows) -> str:
    """A table in Markdown."""
    first, *lines = ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (head, *rows))
    return "\n".join([first, "|" + "---|" * len(head), *lines]) + "\n"


def latex_table(head: Sequence[str], rows: Rows, names: int, note: str) -> str:
    """A tabular for the package booktabs; its cells are LaTeX, and the first `names` columns are left-aligned.

    A name that repeats from row to row is written once; with several columns of names, a line separates the groups of
    the first. The note is a comment.
    """
    lines = [
        rf"% needs \usepackage{{booktabs}}; {note.translate(_COMMENT)}",
        rf"\begin{{tabular}}{{{'l' * names + 'c' * (len(head) - names)}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
    ]
    before: Sequence[str] = ()
    for row in rows:
        own = row[:names]
        if before and names > 1 and own[0] != before[0]:
            lines.append(r"\midrule")
        shown = ["" if own[: i + 1] == before[: i + 1] else name for i, name in enumerate(own)]
        lines.append(" & ".join([*shown, *row[names:]]) + r" \\")
        before = own
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def latex_text(text: str) -> str:
    """Escape text for LaTeX, and write symbols as formulas."""
    return "".join(
        f"${piece}$" if is_formula else "".join(_LATEX.get(sign, sign) for sign in piece)
        for piece, is_formula in formulas(text)
    )
