"""Several variants of one experiment, from one file."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pandas as pd
import pytest

from vefl_sim.analysis.comparison import comparison_lines
from vefl_sim.analysis.figures.comparison import accuracy_by_round, draw_comparison, legend_order, line_styles
from vefl_sim.cli.main import main
from vefl_sim.core.errors import BadInput, ExperimentError
from vefl_sim.experiment.toml import load
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.comparison import Compared, Comparison, compare
from vefl_sim.sweep.variants import load_variants

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
label = "FDPC, unconstrained"
scheme = { kind = "fdpc", constrained = false }
"""
)


def written(folder: Path, text: str) -> Path:
    (folder / "x.toml").write_text(text)
    return folder / "x.toml"


def test_variants_differ_only_in_their_tables(tmp_path: Path) -> None:
    first, second = load_variants(written(tmp_path, TWO), ["run.seed=7"])
    assert (first.label, second.label) == ("PDPC", "FDPC, unconstrained")
    assert (first.experiment.run.name, second.experiment.run.name) == ("both-pdpc", "both-fdpc-unconstrained")
    assert (first.experiment.scheme.selected, second.experiment.scheme.constrained) == (3, False)
    assert first.experiment.run.seed == second.experiment.run.seed == 7
    assert first.experiment.traffic == second.experiment.traffic


def test_a_plain_experiment_has_no_variants(tmp_path: Path) -> None:
    assert load_variants(written(tmp_path, HEAD)) == []


def test_one_experiment_cannot_be_loaded_from_several(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="compares several experiments"):
        load(written(tmp_path, TWO))


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        ('[[compare]]\nscheme = { kind = "fdpc" }', "needs a label, for example"),
        ('[[compare]]\nlabel = "a"\n[[compare]]\nlabel = "a"', "have the label 'a'"),
        ('[compare]\nlabel = "a"', r"\[\[compare\]\], each with a label"),
        ('[[compare]]\nlabel = "a"\nscheme = 3', r"compare, 'a': scheme must be a table"),
        ('[[compare]]\nlabel = "a"\nradio = { prbs = 0 }', r"compare, 'a': radio\.prbs = 0: it must be at least 1"),
    ],
)
def test_bad_variants_get_one_sentence(variants: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=message):
        load_variants(written(tmp_path, HEAD + variants))


def test_all_variants_have_the_same_traffic_and_data_and_are_compared(tmp_path: Path) -> None:
    comparison = compare(load_variants(written(tmp_path, TWO)), out=tmp_path / "runs")
    worlds = [c.run.vehicles[["round", "cv", "distance_m", "sojourn_ns", "samples"]] for c in comparison.runs]
    pd.testing.assert_frame_equal(*worlds)
    table = comparison.table()
    assert table.index.tolist() == ["PDPC", "FDPC, unconstrained"]
    assert table.loc["PDPC", "ordered"] <= 3 < table.loc["FDPC, unconstrained", "ordered"]
    assert table.loc["FDPC, unconstrained", "p_suc"] == 1
    comparison.write()
    assert len(pd.read_csv(comparison.path / "comparison.csv")) == 2
    assert len(pd.read_csv(comparison.path / "rounds.csv")) == 4
    assert draw_comparison(comparison).stat().st_size > 10_000
    assert len([*comparison_lines(comparison)]) == 4
    again = compare(load_variants(written(tmp_path, TWO)), out=tmp_path / "runs")
    assert [c.run.path for c in again.runs] == [c.run.path for c in comparison.runs]


def test_variants_share_traffic_and_data_with_the_same_seed_only(tmp_path: Path) -> None:
    file = written(tmp_path, TWO)
    comparison = compare(load_variants(file, ["run.rounds=1"], seeds=[1, 2]), out=tmp_path / "runs")
    assert [(c.label, c.seed) for c in comparison.runs] == [
        ("PDPC", 1), ("FDPC, unconstrained", 1), ("PDPC", 2), ("FDPC, unconstrained", 2),
    ]  # fmt: skip
    worlds = [c.run.vehicles[["round", "cv", "distance_m", "sojourn_ns", "samples"]] for c in comparison.runs]
    pd.testing.assert_frame_equal(worlds[0], worlds[1])
    pd.testing.assert_frame_equal(worlds[2], worlds[3])
    assert not worlds[0].equals(worlds[2])
    alone = compare(load_variants(file, ["run.rounds=1", "run.seed=2"]), out=tmp_path / "runs")
    assert [c.run.path for c in alone.runs] == [c.run.path for c in comparison.runs[2:]]  # reused
    assert alone.path != comparison.path


def test_the_command_line_runs_every_seed_and_writes_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, TWO.replace("rounds = 2", "rounds = 1"))
    with pytest.raises(SystemExit) as ended:
        main([str(file), "--seeds", "4-5", "--out", str(tmp_path / "runs")])
    assert ended.value.code == 0
    output = capsys.readouterr().out
    assert "variant 1 of 2, seed 1 of 2: PDPC with seed 4" in output
    assert "variant 2 of 2, seed 2 of 2: FDPC, unconstrained with seed 5" in output
    assert "differences to PDPC, paired over 2 seeds (4, 5)" in output
    [folder] = [file.parent for file in (tmp_path / "runs").rglob("comparison.csv")]
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in ("comparison", "differences", "seeds", "rounds")}
    assert {name: len(table) for name, table in tables.items()} == {
        "comparison": 2, "differences": 9, "seeds": 4, "rounds": 4,
    }  # fmt: skip
    assert tables["comparison"].columns[:8].tolist() == [
        "variant", "ordered", "delivered", "p_suc", "cost", "energy_j", "accuracy", "best_accuracy",
    ]  # fmt: skip
    paid = tables["rounds"].pivot(index="seed", columns="variant", values="cost")
    cost = tables["differences"].set_index("figure").loc["cost"]
    assert cost["difference"] == pytest.approx((paid["FDPC, unconstrained"] - paid["PDPC"]).mean())
    assert tables["comparison"]["cost"].tolist() == pytest.approx(
        [paid["PDPC"].mean(), paid["FDPC, unconstrained"].mean()]
    )
    assert (folder / "comparison.png").exists()


def test_seeds_on_the_command_line_need_a_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(written(tmp_path, HEAD)), "--seeds", "1,2"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: --seeds is for files with [[compare]]")


def test_means_over_different_seeds_are_refused(tmp_path: Path) -> None:
    variants = load_variants(written(tmp_path, TWO), seeds=[1, 2])
    with pytest.raises(BadInput, match="'FDPC, unconstrained': its seeds are not those of 'PDPC'"):
        compare(variants[:3], out=tmp_path)
    with pytest.raises(BadInput, match="'PDPC': a seed appears twice"):
        compare([*variants, variants[0]], out=tmp_path)


def run(accuracies: list[float | None], cost: float) -> Run:
    """The part of a run that a comparison reads; all rounds cost the same."""
    last = accuracies[-1]
    rounds = pd.DataFrame({"round": range(1, len(accuracies) + 1), "cost": cost, "ordered": 4, "delivered": 3})
    return cast(
        Run,
        SimpleNamespace(
            path=Path("somewhere"),
            rounds=rounds.assign(energy_j=7.0, accuracy=pd.array(accuracies, dtype="Float64")),
            vehicles=pd.DataFrame({"delivered_fraction": [1.0, 0.5, None]}),
            summary={"last_accuracy": last, "best_accuracy": last, "simulated_s": 10.0, "wall_s": 2.0},
        ),
    )


def invented(folder: Path, **variants: list[Run]) -> Comparison:
    """A comparison of these runs, with the seeds 1, 2, …"""
    runs = [Compared(name, seed, run) for name, own in variants.items() for seed, run in enumerate(own, start=1)]
    return Comparison(folder, tuple(runs))


def test_lines_of_several_seeds_have_intervals_and_differences(tmp_path: Path) -> None:
    first = [run([0.1, 0.50], 100.0), run([0.1, 0.60], 102.0), run([0.1, 0.70], 104.0)]
    second = [run([0.1, 0.60], 90.0), run([0.1, 0.71], 102.0), run([0.1, 0.82], 104.0)]
    lines = [*comparison_lines(invented(tmp_path, first=first, second=second))]
    assert lines[1] == "means over 3 seeds (1, 2, 3), ± half-width of the 95 % confidence interval"
    assert lines[3].split() == [  # t = 4.30265, s of 100, 102, 104 is 2: ±4.97; of the accuracies 0.1: ±0.2484
        "first", "4.0", "3.0", "0.7500", "102.0", "±5.0", "7.0", "0.6000", "±0.2484", "0.6000", "10.0", "2.0",
    ]  # fmt: skip
    assert "differences to first, paired over 3 seeds" in lines[6]
    assert lines[8].split() == [  # 0.10, 0.11, 0.12: ±0.0248; -10, 0, 0: s = 5.7735, ±14.3
        "second", "+0.1100", "±0.0248*", "+0.0000", "±0.0000", "-3.3", "±14.3", "+0.0", "±0.0",
    ]  # fmt: skip
    assert max(map(len, lines)) < 120


def test_lines_of_one_seed_have_neither(tmp_path: Path) -> None:
    lines = [*comparison_lines(invented(tmp_path, first=[run([0.5], 100.0)], second=[run([0.6], 90.0)]))]
    assert len(lines) == 4
    assert not any("±" in line for line in lines)
    assert lines[2].split() == ["first", "4.0", "3.0", "0.7500", "100.0", "7.0", "0.5000", "0.5000", "10.0", "2.0"]


def test_lines_without_learning_have_no_accuracy(tmp_path: Path) -> None:
    runs = [run([None], 100.0), run([None], 101.0)]
    lines = [*comparison_lines(invented(tmp_path, first=runs, second=runs))]
    assert not any("accuracy" in line or "nan" in line for line in lines)


def test_the_curve_is_the_mean_where_all_seeds_were_evaluated() -> None:
    curve = accuracy_by_round([run([0.1, None, 0.4, 0.9], 1.0), run([0.3, 0.2, 0.8], 1.0)])
    assert curve.index.tolist() == [1, 3]
    assert curve["mean"].tolist() == pytest.approx([0.2, 0.6])
    assert curve["std"].tolist() == pytest.approx([0.02**0.5, 0.08**0.5])  # of two values: |difference|/√2


def test_a_label_and_its_unconstrained_twin_share_a_colour() -> None:
    names = [f"scheme {number}" for number in range(11)]
    labels = [*names, *(f"{name}, unconstrained" for name in names)]
    lines = {line["label"]: (line["color"], line["ls"]) for line in line_styles(labels)}
    assert len(set(lines.values())) == len(labels)
    assert all(lines[name][0] == lines[f"{name}, unconstrained"][0] for name in names)
    assert (lines["scheme 0"][1], lines["scheme 0, unconstrained"][1]) == ("-", "--")


def test_the_legend_keeps_pairs_together() -> None:
    labels = ["a", "b", "c", "a, unconstrained", "d, unconstrained", "c, unconstrained"]
    ordered = ["a", "a, unconstrained", "c", "c, unconstrained", "b", "d, unconstrained"]
    assert legend_order(labels) == ordered


def test_a_dozen_variants_are_drawn(tmp_path: Path) -> None:
    runs = {f"variant {number}": [run([0.1, 0.5], 9.0), run([0.1, 0.6], 8.0)] for number in range(12)}
    assert draw_comparison(invented(tmp_path, **runs)).stat().st_size > 10_000
