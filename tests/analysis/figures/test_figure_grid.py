"""The table of final accuracies in Markdown, LaTeX and CSV."""

from pathlib import Path

import pandas as pd
import pytest

from tests.analysis.figures.invented_runs import pretend, run, sweep
from vefl_sim.analysis.figures.drawing import draw_figure
from vefl_sim.analysis.figures.tables.typeset import latex_text
from vefl_sim.records.run_directory import Run

TEXT = """
[sweep]
seeds = [1, 2]
data.dirichlet_alpha = [0.1, 10.0]
[[sweep.zip]]
data.kind = ["mnist", "cifar10"]
scheme.selected = [8, 12]
[figure]
kind = "table"
rows = ["data.kind", "data.dirichlet_alpha"]
[[compare]]
label = "PDPC"
[[compare]]
label = "FDPC & all"
scheme.kind = "fdpc"
[[compare]]
label = "FedProx, unconstrained"
scheme = { kind = "fedprox", constrained = false }
"""


def runs() -> dict[tuple[object, ...], Run]:
    """Two seeds on MNIST with α = 0.1, one seed of PDPC with α = 10, and no runs on CIFAR-10."""
    final = {"PDPC": (0.9, 0.92), "FDPC & all": (0.88, 0.8999), "FedProx, unconstrained": (0.97, 0.95)}
    mnist = (0.1, "mnist", 8)
    found = {(label, *mnist, s): run([0.1, own[s - 1]]) for label, own in final.items() for s in (1, 2)}
    return found | {("PDPC", 10.0, "mnist", 8, 2): run([0.5])}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pretend(monkeypatch, runs())
    draw_figure(sweep(tmp_path, TEXT), tmp_path, tmp_path / "figures")
    return tmp_path / "figures"


def test_as_markdown(folder: Path) -> None:
    lines = (folder / "s_table.md").read_text().splitlines()
    assert lines[0] == "| data set | α | PDPC | FDPC & all | FedProx, unconstrained |"
    assert lines[2:6] == [
        "| MNIST | 0.1 | **0.9100** ± 0.0141 | 0.8900 ± 0.0141 | 0.9600 ± 0.0141 |",
        "| MNIST | 10 | 0.5000 (1 of 2) | – | – |",
        "| CIFAR-10 | 0.1 | – | – | – |",
        "| CIFAR-10 | 10 | – | – | – |",
    ]
    assert lines[7].startswith("final accuracy: mean ± s.d. over seeds; bold: the best of a row (of constrained")


def test_as_latex(folder: Path) -> None:
    text = (folder / "s_table.tex").read_text()
    lines = text.splitlines()
    assert lines[0].startswith(r"% needs \usepackage{booktabs}; final accuracy: mean +- s.d. over seeds; bold:")
    assert lines[1:3] == [r"\begin{tabular}{llccc}", r"\toprule"]
    assert lines[3] == r"data set & $\alpha$ & PDPC & FDPC \& all & FedProx, unconstrained \\"
    assert lines[5] == (r"MNIST & 0.1 & \textbf{0.9100} $\pm$ 0.0141 & 0.8900 $\pm$ 0.0141 & 0.9600 $\pm$ 0.0141 \\")
    assert lines[6] == r" & 10 & 0.5000 (1 of 2) & -- & -- \\"
    assert (lines[4], lines[7], lines[-2]) == (r"\midrule", r"\midrule", r"\bottomrule")
    assert lines[-1] == r"\end{tabular}"
    assert text.isascii()
    assert text.count("{") == text.count("}")
    assert all(line.replace(r"\$", "").count("$") % 2 == 0 for line in lines)
    cells = [line for line in lines if line.endswith(r"\\")]
    assert {line.replace(r"\&", "").count("&") for line in cells} == {4}


def test_as_csv(folder: Path) -> None:
    rows = pd.read_csv(folder / "s_table.csv").set_index(["data set", "α", "line"])
    assert len(rows) == 12
    assert rows.loc[("MNIST", 0.1, "PDPC"), ["mean", "seeds", "best"]].tolist() == [pytest.approx(0.91), 2, True]
    assert rows["best"].sum() == 1
    differences = pd.read_csv(folder / "s_table_differences.csv").set_index(["panel", "line"])
    assert differences.loc[("MNIST, α = 0.1", "FDPC & all"), "difference"] == pytest.approx(-0.02005)


@pytest.mark.parametrize(
    ("first", "second", "bold"),
    [
        ((0.90, 0.92), (0.88, 0.8999), True),  # differences 0.0200 and 0.0201
        ((0.90, 0.92), (0.88, 0.89), False),  # 0.02 and 0.03: t = 12.7 with two seeds
        ((0.90, 0.92), (0.90, 0.92), False),
        ((0.90,), (0.80,), False),
    ],
)
def test_bold_is_what_differs_from_the_next_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: tuple[float, ...], second: tuple[float, ...], bold: bool
) -> None:
    final = {"PDPC": first, "FDPC & all": second, "FedProx, unconstrained": (0.99, 0.99)}
    own = {(name, 0.1, "mnist", 8, s): run([v]) for name, values in final.items() for s, v in enumerate(values, 1)}
    pretend(monkeypatch, own)
    draw_figure(sweep(tmp_path, TEXT), tmp_path, tmp_path)
    assert ("**" in (tmp_path / "s_table.md").read_text()) == bold
    assert pd.read_csv(tmp_path / "s_table.csv")["best"].sum() == bold


@pytest.mark.parametrize(
    ("band", "cells"),
    [
        ('"ci95"', ["0.9100 ± 0.1271", "0.8850 ± 0.0635"]),  # 12.7062·s/√2
        ('"minmax"', ["0.9100 [0.9000, 0.9200]", "0.8850 [0.8800, 0.8900]"]),
        ('"none"', ["0.9100", "0.8850"]),
        ('"ci95"\ncompare_to = "PDPC"', ["0.9100", "0.8850 ± 0.0635"]),  # of the differences 0.02 and 0.03
    ],
)
def test_the_band_of_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, band: str, cells: list[str]) -> None:
    final = {"PDPC": (0.9, 0.92), "FDPC & all": (0.88, 0.89)}
    own = {(name, 0.1, "mnist", 8, s): run([v]) for name, values in final.items() for s, v in enumerate(values, 1)}
    pretend(monkeypatch, own)
    draw_figure(sweep(tmp_path, TEXT.replace('kind = "table"', f'kind = "table"\nband = {band}')), tmp_path, tmp_path)
    assert (tmp_path / "s_table.md").read_text().splitlines()[2].split(" | ")[2:4] == cells


def test_a_table_of_costs_has_the_lowest_in_bold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cost = {"PDPC": (0.031, 0.043), "FDPC & all": (0.021, 0.0329), "FedProx, unconstrained": (0.01, 0.01)}
    own = {(name, 0.1, "mnist", 8, s): run([0.5], [v]) for name, vs in cost.items() for s, v in enumerate(vs, 1)}
    pretend(monkeypatch, own)
    text = TEXT.replace('kind = "table"', 'kind = "table"\nmeasure = "cost"\nband = "none"')
    draw_figure(sweep(tmp_path, text), tmp_path, tmp_path)
    first = (tmp_path / "s_table_cost.md").read_text().splitlines()[2]
    assert first == "| MNIST | 0.1 | 0.037 | **0.027** | 0.010 |"  # two significant digits, not 0.0


def test_symbols_of_headings_are_formulas() -> None:
    assert latex_text("|C_k| = 10") == r"$|\mathcal{C}_k|$ = 10"
    assert latex_text("λ̄ = 1, λ = 0, α") == r"$\bar{\lambda}$ = 1, $\lambda$ = 0, $\alpha$"
    assert latex_text("pRBs (Z), t_th [s]") == r"pRBs ($Z$), $t_{\mathrm{th}}$ [s]"
    assert latex_text("50 % & a_b | {x}") == r"50 \% \& $a_{\mathrm{b}}$ $|$ \{x\}"
