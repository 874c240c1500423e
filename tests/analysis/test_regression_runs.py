"""Runs that predict numbers, wherever a person sees them: their own metric by its name, and no accuracy."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.figures.invented_runs import pretend, run, sweep
from tests.analysis.report.pages import data_of
from tests.command_line import call
from vefl_sim import Run, from_tables, load_sweep, simulate
from vefl_sim.analysis.comparison import comparison_lines
from vefl_sim.analysis.figures.drawing import draw_figure, drawing_lines
from vefl_sim.analysis.report.page import report
from vefl_sim.analysis.runs import run_lines
from vefl_sim.analysis.summary import summary_lines
from vefl_sim.analysis.sweep_report.page import sweep_report
from vefl_sim.analysis.sweep_report.source import SweepSource
from vefl_sim.core.errors import BadInput
from vefl_sim.sweep.comparison import compare

POSITIONS = """
[run]
name = "ahead"
duration_s = 40.0
[traffic]
mean_in_coverage = 12.0
[scheme]
kind = "fdpc"
[data]
kind = "positions"
partition = "own"
[model]
factory = "vefl_models.mlp:mlp"
[learning]
loss = "mse"
batch_size = 16
learning_rate = 0.01
"""
SIGNS: dict[str, Any] = {
    "run": {"name": "signs", "rounds": 2},
    "traffic": {"mean_in_coverage": 12.0},
    "data": {"train_samples": 400, "test_samples": 20, "image_px": 16},
    "model": {"factory": "vefl_models.logistic:logistic"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, made by the program, and what it has printed."""
    folder = tmp_path_factory.mktemp("regression")
    (folder / "ahead.toml").write_text(POSITIONS)
    printed = call("ahead.toml", cwd=folder)
    (folder / "printed").write_text(printed.stdout + printed.stderr)
    return folder


@pytest.fixture(scope="module")
def ahead(folder: Path) -> Run:
    return Run(next((folder / "runs").glob("ahead-*")))


def rmse_of(run: Run) -> str:
    return f"{run.summary['last_loss'] ** 0.5:#.4g}"


def test_progress_and_summary(folder: Path, ahead: Run) -> None:
    printed = (folder / "printed").read_text()
    assert len(re.findall(r"^round .* \| rmse \d\.\d+ \| ", printed, re.M)) == 8
    assert re.search(rf"^rmse +\S+ first, \S+ best, {rmse_of(ahead)} last$", printed, re.M)
    assert "accuracy" not in printed
    assert [line for line in summary_lines(ahead) if line.startswith("rmse")] != []


def test_the_summary_gives_the_rmse_of_the_rule_to_surpass(folder: Path, ahead: Run) -> None:
    evaluated = re.search(r"^rmse +\S+ \(constant velocity: (\S+)\)$", call("evaluate", ahead.path).stdout, re.M)
    assert evaluated
    line = "compare with    {}, the rmse of constant velocity on the same samples, without any learning\n"
    assert line.format(evaluated[1]) in (folder / "printed").read_text()
    again = call("ahead.toml", cwd=folder).stdout  # it is done, and its data are not made again
    path = ahead.path.relative_to(folder)
    assert f"compare with    the rmse of constant velocity, which python -m vefl_sim evaluate {path} prints\n" in again
    assert ahead.content_digest() == ahead.summary["content_digest"]


def test_a_list_of_runs_with_different_metrics(tmp_path: Path, ahead: Run) -> None:
    (tmp_path / ahead.path.name).symlink_to(ahead.path)
    signs = simulate(from_tables(SIGNS), out=tmp_path)
    heading, *lines = run_lines(tmp_path)
    assert "result" in heading.split()
    assert any(f"rmse {rmse_of(ahead)}" in line for line in lines)
    assert any(re.search(r"accuracy 0\.\d{4}", line) for line in lines)
    assert "compare with" not in "".join(summary_lines(signs))  # these data have no rule


def test_the_report_page(ahead: Run) -> None:
    page = report(ahead)
    reached = f"{ahead.summary['last_loss'] ** 0.5:#.3g}"
    assert f"the final rmse on the test set was {reached}" in page
    assert data_of(page)["metric"] == {"name": "rmse", "share": False, "loss": " (mse)"}
    assert f"<span class='label'>final rmse</span><span class='value'>{reached}</span>" in page
    assert "final accuracy" not in page
    assert "Accuracy by class" not in page


@pytest.mark.slow
def test_a_comparison_and_its_page(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    text = POSITIONS.replace("40.0", "20.0")
    for kind in ("fdpc", "fedavg", "centralized"):
        text += f'[[compare]]\nlabel = "{kind}"\nscheme = {{ kind = "{kind}" }}\n'
    (folder / "compare.toml").write_text(text)
    compared = compare(
        load_sweep(folder / "compare.toml", ["data.min_samples=1"], seeds=(1, 2)), folder / "compared", workers=1
    )
    lines = "\n".join(comparison_lines(compared))
    assert re.search(r"J +rmse +best", lines)
    assert "accuracy" not in lines
    assert {"rmse", "best_rmse"} <= set(compared.by_seed.columns)
    assert "rmse" in set(compared.differences()["figure"])
    compared.write()
    source = SweepSource(compared.path / "seeds.csv")
    assert source.parameters == ["variant"]
    page = sweep_report(source, compared.path)
    assert "final rmse" in page
    assert "final loss (mse)" in page
    assert "test rmse, by round" in page
    assert "accuracy" not in page


# Figures, of runs with invented tables


def test_figures_of_the_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    pretend(monkeypatch, {(1,): run(losses=[4.0, 1.0], loss="mse"), (2,): run(losses=[9.0, 4.0], loss="mse")})
    drawing = draw_figure(sweep(tmp_path, "[sweep]\nseeds = [1, 2]\n[figure]\nmarks = [2]\n"), tmp_path)
    lines = [*drawing_lines(drawing, tmp_path)]
    assert drawing.chart.marks["mean"].tolist() == [1.5]
    assert "test rmse, mean ± s.d. over seeds, at x =" in lines
    assert "final rmse: mean ± s.d. over seeds" in lines
    loss = draw_figure(sweep(tmp_path, '[sweep]\nseeds = [1, 2]\n[figure]\nkind = "loss"\n'), tmp_path)
    assert "final loss (mse): mean ± s.d. over seeds" in drawing_lines(loss, tmp_path)


def test_an_accuracy_and_an_error_are_not_drawn_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {(1,): run([0.5]), (2,): run(losses=[4.0], loss="mse")})
    with pytest.raises(BadInput, match=r"different metrics \(accuracy, rmse; learning.loss\)"):
        draw_figure(sweep(tmp_path, "[sweep]\nseeds = [1, 2]\n"), tmp_path)


def test_failure_rates_need_an_accuracy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    pretend(monkeypatch, {(1,): run(losses=[4.0], loss="mse")})
    with pytest.raises(BadInput, match="have no accuracy: they predict numbers, and are judged by their rmse"):
        draw_figure(sweep(tmp_path, '[sweep]\nseeds = [1]\n[figure]\nkind = "failure-rate"\n'), tmp_path)
