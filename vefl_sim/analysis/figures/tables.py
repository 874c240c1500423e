"""Tables in Markdown and LaTeX, and the table of one number per run, as in the paper's Table I."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from vefl_sim.analysis.figures.chart import Chart, band_text, band_words
from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import decimals
from vefl_sim.analysis.figures.names import formulas
from vefl_sim.analysis.summary import trains_centrally
from vefl_sim.sweep.paired import difference

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "α": r"$\alpha$", "δ": r"$\delta$", "λ": r"$\lambda$",
    "μ": r"$\mu$", "Ξ": r"$\Xi$", "–": "--", "±": r"$\pm$", "|": r"$|$", "<": r"$<$", ">": r"$>$", "→": r"$\to$",
    "×": r"$\times$", "−": "$-$", "≤": r"$\le$", "≥": r"$\ge$",
}  # fmt: skip
_COMMENT = str.maketrans({"±": "+-", "×": "x", "–": "-", "→": "->"})


@dataclass(frozen=True)
class Table:
    """A table of texts; **bold** as in Markdown."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int  # columns on the left that name a row
    note: str  # what the cells are

    def markdown(self) -> str:
        """The table in Markdown."""
        rows = (self.head, *self.rows)
        first, *lines = ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
        return "\n".join([first, "|" + "---|" * len(self.head), *lines]) + f"\n\n{self.note}\n"

    def latex(self) -> str:
        """A tabular for the package booktabs, with the note as a comment."""
        head, *rows = (" & ".join(map(latex_text, row)) + r" \\" for row in (self.head, *self.rows))
        columns = "l" * self.names + "c" * (len(self.head) - self.names)
        top = [rf"% needs \usepackage{{booktabs}}; {self.note.translate(_COMMENT)}", rf"\begin{{tabular}}{{{columns}}}"]
        lines = [*top, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
        return "\n".join(lines) + "\n"


def latex_text(text: str) -> str:
    """Escape text for LaTeX, with symbols as formulas and **bold** text."""
    escaped = "".join(
        f"${piece}$" if is_formula else "".join(_LATEX.get(sign, sign) for sign in piece)
        for piece, is_formula in formulas(text)
    )
    return re.sub(r"\*\*(.*?)\*\*", r"\\textbf{\1}", escaped)


def grid(chart: Chart, headings: Sequence[str]) -> tuple[pd.DataFrame, Table]:
    """The cells, one row each, and the table: its rows are the panels of the chart, its columns the lines."""
    best = [place for row in dict.fromkeys(group.row for group in chart.groups) for place in _best(chart, row)]
    digits = decimals(chart.rows["mean"], chart.measure.digits)
    cells, texts = [], {}
    for place, (group, (_, row)) in enumerate(zip(chart.groups, chart.rows.iterrows(), strict=True)):
        names = dict(zip(headings, group.row, strict=True)) | {"line": group.line}
        cells.append(names | row[["mean", "std", "low", "high", "seeds"]].to_dict() | {"best": place in best})
        mean = f"{row['mean']:.{digits}f}".replace("-", "−")
        count = "" if row["seeds"] == len(group.points) else f"({row['seeds']} of {len(group.points)})"
        band = band_text(row, chart.request.band, digits, "± ")
        text = " ".join(filter(None, [f"**{mean}**" if place in best else mean, band, count]))
        texts[group.row, group.line] = text if row["seeds"] else "–"
    note = (
        f"{chart.measure.number}: mean{band_words(chart.request)} over seeds; bold: the best of a row (of constrained "
        "schemes), if the 95 % confidence interval of its difference to the next best, paired by seed, excludes 0."
    )
    rows = [
        [*row, *(texts.get((row, line), "–") for line in chart.lines)] for row in dict.fromkeys(row for row, _ in texts)
    ]
    return pd.DataFrame(cells), Table([*headings, *chart.lines], rows, len(headings), note)


def _best(chart: Chart, row: tuple[str, ...]) -> list[int]:
    """The best constrained scheme of a row, if it is better than the next best beyond its confidence interval."""
    numbers, lower = chart.numbers, chart.measure.lower_is_better
    own = (place for place, group in enumerate(chart.groups) if group.row == row and _is_constrained(group))
    rivals = sorted((place for place in own if len(numbers[place])), key=lambda place: numbers[place].mean())
    if len(rivals) < 2:
        return []
    first, second = rivals[:2] if lower else rivals[:-3:-1]
    paired = difference(numbers[first], numbers[second])  # of the seeds that both have
    return [first] if paired["differs"] and (paired["difference"] < 0) == lower else []


def _is_constrained(group: Group) -> bool:
    """Whether the scheme is limited by the resources of the CVs and the network."""
    experiment = group.points[0].experiment
    return experiment.scheme.constrained and not trains_centrally(experiment)
