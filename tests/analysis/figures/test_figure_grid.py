"""The table of final accuracies in Markdown, LaTeX and CSV."""

from pathlib import Path

import pandas as pd
import pytest

from tests.analysis.figures.invented_runs import pretend, run, sweep
from vefl_sim.analysis.figures.drawing import draw_figure
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
    final = {"PDPC": (0.9, 0.92), "FDPC & all": (0.88, 0.89), "FedProx, unconstrained": (0.97, 0.95)}
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
    assert lines[2:] == [
        "| MNIST | 0.1 | **0.9100** ± 0.0141 | 0.8850 ± 0.0071 | 0.9600 ± 0.0141 |",
        "| MNIST | 10 | 0.5000 (1 of 2) | – | – |",
        "| CIFAR-10 | 0.1 | – | – | – |",
        "| CIFAR-10 | 10 | – | – | – |",
    ]


def test_as_latex(folder: Path) -> None:
    text = (folder / "s_table.tex").read_text()
    lines = text.splitlines()
    assert lines[0] == r"\begin{tabular}{llccc}"
    assert lines[2] == r"data set & $\alpha$ & PDPC & FDPC \& all & FedProx, unconstrained \\"
    assert lines[4] == (r"MNIST & 0.1 & \textbf{0.9100} $\pm$ 0.0141 & 0.8850 $\pm$ 0.0071 & 0.9600 $\pm$ 0.0141 \\")
    assert lines[5] == r" & 10 & 0.5000 (1 of 2) & -- & -- \\"
    assert lines[6] == r"\hline"
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
    assert differences.loc[("MNIST, α = 0.1", "FDPC & all"), "difference"] == pytest.approx(-0.025)


def test_equal_means_are_both_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tied = {("PDPC", 0.1, "mnist", 8, 1): run([0.98161]), ("FDPC & all", 0.1, "mnist", 8, 1): run([0.98159])}
    pretend(monkeypatch, tied)
    draw_figure(sweep(tmp_path, TEXT), tmp_path, tmp_path)
    assert "| **0.9816** (1 of 2) | **0.9816** (1 of 2) | – |" in (tmp_path / "s_table.md").read_text()
