"""Figures that are tables: one number per run, and the effects of swept keys, in Markdown, LaTeX and CSV."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.analysis.figures.conftest import DrawFigure
from tests.analysis.figures.invented_runs import run
from vefl_sim.analysis.figures.chart import Chart
from vefl_sim.analysis.figures.drawing import drawing_lines
from vefl_sim.analysis.figures.effects import Effects
from vefl_sim.analysis.figures.request import Request
from vefl_sim.core.errors import BadInput
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.effects import Factor, Factorial

TABLE = """
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


def mnist(costs: bool = False, **values: tuple[float, ...]) -> dict[tuple[object, ...], Run]:
    """Runs on MNIST with α = 0.1 that end with these accuracies, or have these costs, one per seed."""
    labels = {"pdpc": "PDPC", "fdpc": "FDPC & all", "fedprox": "FedProx, unconstrained"}
    return {
        (labels[name], 0.1, "mnist", 8, seed): run([0.5], [value]) if costs else run([0.1, value])
        for name, own in values.items()
        for seed, value in enumerate(own, 1)
    }


def test_a_table_as_markdown_latex_and_csv(draw: DrawFigure, tmp_path: Path) -> None:
    """Two seeds on MNIST with α = 0.1, one seed of PDPC with α = 10, and no runs on CIFAR-10."""
    runs = mnist(pdpc=(0.9, 0.92), fdpc=(0.88, 0.8999), fedprox=(0.97, 0.95))
    draw(runs | {("PDPC", 10.0, "mnist", 8, 2): run([0.5])}, TABLE)
    lines = (tmp_path / "to/s_table.md").read_text().splitlines()
    assert lines[0] == "| data set | α | PDPC | FDPC & all | FedProx, unconstrained |"
    assert lines[2:6] == [
        "| MNIST | 0.1 | **0.9100** ± 0.0141 | 0.8900 ± 0.0141 | 0.9600 ± 0.0141 |",
        "| MNIST | 10 | 0.5000 (1 of 2) | – | – |",
        "| CIFAR-10 | 0.1 | – | – | – |",
        "| CIFAR-10 | 10 | – | – | – |",
    ]
    assert lines[7].startswith("final accuracy: mean ± s.d. over seeds; bold: the best of a row")
    text = (tmp_path / "to/s_table.tex").read_text()
    lines = text.splitlines()
    assert lines[0].startswith(r"% needs \usepackage{booktabs}; final accuracy: mean +- s.d. over seeds; bold:")
    assert lines[1:3] == [r"\begin{tabular}{llccc}", r"\toprule"]
    assert lines[3] == r"data set & $\alpha$ & PDPC & FDPC \& all & FedProx, unconstrained \\"
    assert lines[5] == (r"MNIST & 0.1 & \textbf{0.9100} $\pm$ 0.0141 & 0.8900 $\pm$ 0.0141 & 0.9600 $\pm$ 0.0141 \\")
    assert lines[6] == r"MNIST & 10 & 0.5000 (1 of 2) & -- & -- \\"
    assert (lines[4], lines[-2:]) == (r"\midrule", [r"\bottomrule", r"\end{tabular}"])
    assert text.isascii()
    rows = pd.read_csv(tmp_path / "to/s_table.csv").set_index(["data set", "α", "line"])
    assert len(rows) == 12
    assert rows.loc[("MNIST", 0.1, "PDPC"), ["mean", "seeds", "best"]].tolist() == [pytest.approx(0.91), 2, True]
    assert rows["best"].sum() == 1
    differences = pd.read_csv(tmp_path / "to/s_table_differences.csv").set_index(["panel", "line"])
    assert differences.loc[("MNIST, α = 0.1", "FDPC & all"), "difference"] == pytest.approx(-0.02005)


@pytest.mark.parametrize(
    ("first", "second", "bold"),
    [
        ((0.90, 0.92), (0.88, 0.89), False),  # 0.02 and 0.03: t = 12.7 with two seeds
        ((0.90, 0.92), (0.90, 0.92), False),
        ((0.90,), (0.80,), False),
        ((0.88, 0.8999), (0.90, 0.92), True),  # differences 0.0200 and 0.0201
    ],
)
def test_bold_is_what_differs_from_the_next_best(
    draw: DrawFigure, first: tuple[float, ...], second: tuple[float, ...], bold: bool
) -> None:
    assert ("**" in draw(mnist(pdpc=first, fdpc=second, fedprox=(0.99, 0.99)), TABLE).text) == bold


@pytest.mark.parametrize(
    ("band", "cells"),
    [
        ('"ci95"', ["0.9100 ± 0.1271", "0.8850 ± 0.0635"]),  # 12.7062·s/√2
        ('"minmax"', ["0.9100 [0.9000, 0.9200]", "0.8850 [0.8800, 0.8900]"]),
        ('"none"', ["0.9100", "0.8850"]),
        ('"ci95"\ncompare_to = "PDPC"', ["0.9100", "0.8850 ± 0.0635"]),  # of the differences 0.02 and 0.03
    ],
)
def test_the_band_of_a_cell(draw: DrawFigure, band: str, cells: list[str]) -> None:
    text = TABLE.replace('kind = "table"', f'kind = "table"\nband = {band}')
    drawing = draw(mnist(pdpc=(0.9, 0.92), fdpc=(0.88, 0.89)), text)
    assert drawing.text.splitlines()[2].split(" | ")[2:4] == cells


def test_a_table_of_costs_has_the_lowest_in_bold(draw: DrawFigure) -> None:
    runs = mnist(costs=True, pdpc=(0.031, 0.043), fdpc=(0.021, 0.0329), fedprox=(0.01, 0.01))
    text = TABLE.replace('kind = "table"', 'kind = "table"\nmeasure = "cost"\nband = "none"')
    first = draw(runs, text).text.splitlines()[2]
    assert first == "| MNIST | 0.1 | 0.037 | **0.027** | 0.010 |"  # two significant digits, not 0.0


EFFECTS = """
[sweep]
seeds = [1, 2, 3]
scheme.selected = [5, 10, 15]
radio.prbs = [5, 10]
[figure]
kind = "effects"
measure = "cost"
"""
POINTS = [(selected, prbs, seed) for selected in (5, 10, 15) for prbs in (5, 10) for seed in (1, 2, 3)]
COSTS = {(s, prbs, seed): run([0.5], [2.0 * s + 2.0 * prbs + 0.1 * seed]) for s, prbs, seed in POINTS}
"""Costs of 2 per selected CV and 10 for the larger number of pRBs, and what a seed adds to both."""


def test_the_files_of_effects(draw: DrawFigure, tmp_path: Path) -> None:
    drawing = draw(COSTS, EFFECTS)
    names = {file.name.removeprefix("s_effects_cost") for file in drawing.files}
    assert names == {".pdf", ".png", ".csv", ".md", ".tex", "_shares.csv"}
    assert drawing.text.splitlines()[2:7] == [
        "| selected CVs (\\|C_k\\|) | 72.7 % | 5 → 10 | +10.0 ±0.0* |",
        "|  |  | 5 → 15 | +20.0 ±0.0* |",
        "| pRBs (Z) | 27.3 % | 5 → 10 | +10.0 ±0.0* |",
        "| selected CVs (\\|C_k\\|) × pRBs (Z) | 0.0 % | 5 → 10; 5 → 10 | +0.0 ±0.0 |",
        "|  |  | 5 → 15; 5 → 10 | +0.0 ±0.0 |",
    ]
    shares = pd.read_csv(tmp_path / "to/s_effects_cost_shares.csv").set_index("effect")["share"]
    assert shares.sum() == pytest.approx(1)
    tex = (tmp_path / "to/s_effects_cost.tex").read_text()
    assert r"selected CVs ($|\mathcal{C}_k|$) & 72.7 \% & 5 $\to$ 10 & +10.0 $\pm$0.0* \\" in tex.splitlines()
    assert tex.isascii()
    assert "| pRBs (Z) | 27.3 % | 5 → 10 | +10.0 ±0.0* |" in drawing_lines(drawing, tmp_path)


def test_missing_points_are_left_out_of_effects_and_named(draw: DrawFigure) -> None:
    drawing = draw({key: own for key, own in COSTS.items() if key[0] != 15 or key[2] == 1}, EFFECTS)
    assert "Not used, because points are missing: selected CVs (|C_k|) = 15." in drawing.text
    assert drawing.incomplete
    with pytest.raises(BadInput, match="17 of 18 points are missing"):
        draw({(5, 5, 1): run([0.5], [1.0])}, EFFECTS)


@pytest.mark.parametrize("measure", ["accuracy", "p_suc", "failure-rate"])
def test_effects_of_variants_on_other_measures(draw: DrawFigure, measure: str) -> None:
    variants = '[[compare]]\nlabel = "A"\n[[compare]]\nlabel = "B"\nscheme.kind = "fdpc"\n'
    text = f'[sweep]\nseeds = [1, 2]\nradio.prbs = [5, 10]\n[figure]\nkind = "effects"\nmeasure = "{measure}"\n'
    own = {
        (label, prbs, seed): run([0.3 + 0.01 * prbs + 0.02 * seed], fractions=[1.0, 0.1 * seed])
        for label in "AB"
        for prbs in (5, 10)
        for seed in (1, 2)
    }
    assert draw(own, text + variants).text.splitlines()[2].startswith("| scheme | 0.0 % | A → B |")


def test_effects_on_an_error(draw: DrawFigure) -> None:
    runs = {key: run(losses=[4.0 + number], loss="mse") for number, key in enumerate(COSTS)}
    assert "final rmse: shares of the variance" in draw(runs, EFFECTS.replace('"cost"', '"accuracy"')).text


def test_a_factor_of_numbers_is_on_the_axis() -> None:
    factors = Factor("scheme", ("A", "B"), ("A", "B")), Factor("pRBs (Z)", ("5", "10"), (5, 10))
    values, chart = np.arange(8.0).reshape(2, 2, 2), Chart(Request(kind="cost"), [])
    assert Effects(Factorial(factors, (1, 2), values), chart).axes == (1, 0)
    assert Effects(Factorial(factors[::-1], (1, 2), values), chart).axes == (0, 1)
