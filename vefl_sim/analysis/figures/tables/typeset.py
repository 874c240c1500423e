"""Writes tables as Markdown and as LaTeX."""

from collections.abc import Sequence

from vefl_sim.analysis.figures.names import formulas

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "α": r"$\alpha$", "δ": r"$\delta$", "λ": r"$\lambda$",
    "μ": r"$\mu$", "Ξ": r"$\Xi$", "–": "--", "±": r"$\pm$", "|": r"$|$", "<": r"$<$", ">": r"$>$", "→": r"$\to$",
    "×": r"$\times$", "−": "$-$", "≤": r"$\le$", "≥": r"$\ge$",
}  # fmt: skip
_COMMENT = str.maketrans({"±": "+-", "×": "x", "–": "-", "→": "->"})
Rows = Sequence[Sequence[str]]


def markdown_table(head: Sequence[str], rows: Rows) -> str:
    """A table in Markdown."""
    return "\n".join([_markdown_row(head), "|" + "---|" * len(head), *map(_markdown_row, rows)]) + "\n"


def latex_table(head: Sequence[str], rows: Rows, names: int, note: str) -> str:
    """A tabular for the package booktabs; its cells are LaTeX, and the first `names` columns are left-aligned.

    A name that repeats from row to row is written once; with several columns of names, a line separates the groups of
    the first. The note is a comment.
    """
    sides = "l" * names + "c" * (len(head) - names)
    lines = [
        rf"% needs \usepackage{{booktabs}}; {note.translate(_COMMENT)}",
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
    ]
    lines += [_latex_row(head), r"\midrule"]
    before: Sequence[str] = ()
    for row in rows:
        own = row[:names]
        if before and names > 1 and own[0] != before[0]:
            lines.append(r"\midrule")
        shown = ["" if own[: i + 1] == before[: i + 1] else name for i, name in enumerate(own)]
        lines.append(_latex_row([*shown, *row[names:]]))
        before = own
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def latex_text(text: str) -> str:
    """Escape text for LaTeX, and write symbols as formulas."""
    return "".join(
        f"${piece}$" if is_formula else "".join(_LATEX.get(sign, sign) for sign in piece)
        for piece, is_formula in formulas(text)
    )


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
