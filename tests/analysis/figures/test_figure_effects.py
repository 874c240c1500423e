"""The figure of effects: its table, its picture, and what it says about missing points."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.analysis.figures.invented_runs import pretend, run, sweep
from tests.command_line import ROOT
from vefl_sim.analysis.figures.drawing import draw_figure
from vefl_sim.analysis.figures.report import drawing_lines
from vefl_sim.analysis.figures.request import Request
from vefl_sim.analysis.figures.tables.effects import Effects
from vefl_sim.core.errors import BadInput
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.effects import Factor, Factorial

TEXT = """
[sweep]
seeds = [1, 2, 3]
scheme.selected = [5, 10, 15]
radio.prbs = [5, 10]
[figure]
kind = "effects"
measure = "cost"
"""


def runs() -> dict[tuple[object, ...], Run]:
    """Costs of 2 per selected CV and 10 for the larger number of pRBs, and what a seed adds to both."""
    return {
        (selected, prbs, seed): run([0.5], [2.0 * selected + 2.0 * prbs + 0.1 * seed])
        for selected in (5, 10, 15)
        for prbs in (5, 10)
        for seed in (1, 2, 3)
    }


def test_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, runs())
    drawing = draw_figure(sweep(tmp_path, TEXT), tmp_path, tmp_path / "here")
    names = {file.name.removeprefix("s_effects_cost") for file in drawing.files}
    assert names == {".pdf", ".png", ".csv", ".md", ".tex", "_shares.csv"}
    lines = (tmp_path / "here" / "s_effects_cost.md").read_text().splitlines()
    assert lines[2:5] == [
        "| selected CVs (\\|C_k\\|) | 72.7 % | 5 → 10 | +10.0 ± 0.0 * |",
        "|  |  | 5 → 15 | +20.0 ± 0.0 * |",
        "| pRBs (Z) | 27.3 % | 5 → 10 | +10.0 ± 0.0 * |",
    ]
    assert lines[5:7] == [
        "| selected CVs (\\|C_k\\|) × pRBs (Z) | 0.0 % | 5 → 10; 5 → 10 | +0.0 ± 0.0 |",
        "|  |  | 5 → 15; 5 → 10 | +0.0 ± 0.0 |",
    ]
    shares = pd.read_csv(tmp_path / "here" / "s_effects_cost_shares.csv").set_index("effect")["share"]
    assert shares.sum() == pytest.approx(1)
    tex = (tmp_path / "here" / "s_effects_cost.tex").read_text()
    assert r"selected CVs ($|\mathcal{C}_k|$) & 72.7 \% & 5 $\to$ 10 & +10.0 $\pm$ 0.0 * \\" in tex.splitlines()
    assert tex.isascii()
    assert "| pRBs (Z) | 27.3 % | 5 → 10 | +10.0 ± 0.0 * |" in drawing_lines(drawing, tmp_path)


def test_missing_points_are_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {key: own for key, own in runs().items() if key[0] != 15 or key[2] == 1})
    drawing = draw_figure(sweep(tmp_path, TEXT), tmp_path)
    assert "Not used, because points are missing: selected CVs (|C_k|) = 15." in drawing.text
    assert drawing.incomplete
    pretend(monkeypatch, {(5, 5, 1): run([0.5], [1.0])})
    with pytest.raises(BadInput, match="17 of 18 points are missing"):
        draw_figure(sweep(tmp_path, TEXT), tmp_path)


@pytest.mark.parametrize("measure", ["accuracy", "total-cost", "p_suc", "failure-rate", "loss"])
def test_other_measures_variants_and_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: str) -> None:
    variants = '[[compare]]\nlabel = "A"\n[[compare]]\nlabel = "B"\nscheme.kind = "fdpc"\n'
    text = f'[sweep]\nseeds = [1, 2]\nradio.prbs = [5, 10]\n[figure]\nkind = "effects"\nmeasure = "{measure}"\n'
    own = {
        (label, prbs, seed): run([0.3 + 0.01 * prbs + 0.02 * seed], fractions=[1.0, 0.1 * seed])
        for label in "AB"
        for prbs in (5, 10)
        for seed in (1, 2)
    }
    pretend(monkeypatch, own)
    drawing = draw_figure(sweep(tmp_path, text + variants), tmp_path)
    assert drawing.text.splitlines()[2].startswith("| scheme | 0.0 % | A → B |")


def test_an_error_larger_than_one_is_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {key: run(losses=[4.0 + number], loss="mse") for number, key in enumerate(runs())}
    pretend(monkeypatch, own)
    drawing = draw_figure(sweep(tmp_path, TEXT.replace('"cost"', '"accuracy"')), tmp_path)
    assert "final rmse: shares of the variance" in drawing.text


def test_every_key_of_the_table_is_documented() -> None:
    page = (ROOT / "docs" / "figures.md").read_text()
    described = page[page.index("## The [figure] table") : page.index("## What is written")]
    assert [key for key in Request.model_fields if f"`{key}`" not in described] == []


def test_a_factor_of_numbers_is_on_the_axis() -> None:
    factors = Factor("scheme", ("A", "B"), ("A", "B")), Factor("pRBs (Z)", ("5", "10"), (5, 10))
    values = np.arange(8.0).reshape(2, 2, 2)
    assert Effects(Factorial(factors, (1, 2), values), Request(kind="cost"), {}).axes == (1, 0)
    assert Effects(Factorial(factors[::-1], (1, 2), values), Request(kind="cost"), {}).axes == (0, 1)
