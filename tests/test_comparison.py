"""Several variants of one experiment, from one file."""

from pathlib import Path

import pandas as pd
import pytest

from vefl_sim.comparison import compare
from vefl_sim.comparison_figure import draw
from vefl_sim.errors import ExperimentError
from vefl_sim.loading import load, load_variants
from vefl_sim.report import comparison_lines

HEAD = """
[run]
name = "both"
rounds = 2
[traffic]
mean_in_coverage = 15.0
[data]
train_samples = 1000
test_samples = 10
image_px = 16
[learning]
kind = "none"
"""
TWO = (
    HEAD
    + """
[[compare]]
label = "PDPC"
scheme = { kind = "pdpc", selected = 3 }
[[compare]]
label = "everybody, free"
scheme = { kind = "fdpc", constrained = false }
"""
)


def written(folder: Path, text: str) -> Path:
    (folder / "x.toml").write_text(text)
    return folder / "x.toml"


def test_variants_differ_only_in_their_tables(tmp_path: Path) -> None:
    first, second = load_variants(written(tmp_path, TWO), ["run.seed=7"])
    assert (first.label, second.label) == ("PDPC", "everybody, free")
    assert (first.experiment.run.name, second.experiment.run.name) == ("both-pdpc", "both-everybody-free")
    assert (first.experiment.scheme.selected, second.experiment.scheme.constrained) == (3, False)
    assert first.experiment.run.seed == second.experiment.run.seed == 7
    assert first.experiment.traffic == second.experiment.traffic


def test_a_plain_experiment_has_no_variants(tmp_path: Path) -> None:
    assert load_variants(written(tmp_path, HEAD)) == []


def test_one_experiment_cannot_be_loaded_from_several(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="compares several experiments"):
        load(written(tmp_path, TWO))


@pytest.mark.parametrize(
    ("variants", "told"),
    [
        ('[[compare]]\nscheme = { kind = "fdpc" }', "needs a label, for example"),
        ('[[compare]]\nlabel = "a"\n[[compare]]\nlabel = "a"', "have the label 'a'"),
        ('[compare]\nlabel = "a"', r"\[\[compare\]\], each with a label"),
        ('[[compare]]\nlabel = "a"\nscheme = 3', r"compare, 'a': scheme must be a table"),
        ('[[compare]]\nlabel = "a"\nradio = { prbs = 0 }', r"compare, 'a': radio\.prbs = 0: it must be at least 1"),
    ],
)
def test_bad_variants_get_one_sentence(variants: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=told):
        load_variants(written(tmp_path, HEAD + variants))


def test_all_see_the_same_world_and_are_compared(tmp_path: Path) -> None:
    comparison = compare(load_variants(written(tmp_path, TWO)), out=tmp_path / "runs")
    worlds = [c.run.vehicles[["round", "cv", "distance_m", "sojourn_ns", "samples"]] for c in comparison.runs]
    pd.testing.assert_frame_equal(*worlds)
    table = comparison.table()
    assert table.index.tolist() == ["PDPC", "everybody, free"]
    assert table.loc["PDPC", "ordered"] <= 3 < table.loc["everybody, free", "ordered"]
    assert table.loc["everybody, free", "p_suc"] == 1
    comparison.write()
    assert len(pd.read_csv(comparison.path / "comparison.csv")) == 2
    assert len(pd.read_csv(comparison.path / "rounds.csv")) == 4
    assert draw(comparison).stat().st_size > 10_000
    assert len([*comparison_lines(comparison)]) == 4
    again = compare(load_variants(written(tmp_path, TWO)), out=tmp_path / "runs")
    assert [c.run.path for c in again.runs] == [c.run.path for c in comparison.runs]
