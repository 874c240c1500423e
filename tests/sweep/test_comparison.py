"""Several variants of one experiment, from one file."""

import os
import signal
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import cast

import pandas as pd
import pytest

from tests.sweep.conftest import InProcessPool
from vefl_sim.analysis.comparison import comparison_lines
from vefl_sim.analysis.draw import compared
from vefl_sim.cli.main import main
from vefl_sim.core.errors import BadInput, RunNotFound
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep import runner
from vefl_sim.sweep.comparison import Compared, Comparison, compare
from vefl_sim.sweep.points import load_sweep

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
FAILING = '[[compare]]\nlabel = "MNIST"\ndata = { kind = "mnist", dir = "/nowhere", image_px = 28 }\n'


def written(folder: Path, text: str) -> Path:
    (folder / "x.toml").write_text(text)
    return folder / "x.toml"


def command(*arguments: object) -> object:
    """The exit code of `python -m vefl_sim` with these arguments."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments)])
    return ended.value.code


@dataclass(frozen=True)
class Finished:
    """A comparison that the command line has run: its file and folder, and what was printed."""

    file: Path
    out: Path
    output: str

    def copy(self, folder: Path) -> tuple[object, ...]:
        """The arguments of the command that runs it again, on copies of its runs below this folder."""
        copytree(self.out, folder / "runs")
        return self.file, "--seeds", "4-5", "--out", folder / "runs"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("finished")
    file, output = written(folder, TWO), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output):
        patch.setattr(runner, "Pool", lambda workers: InProcessPool())
        assert command(file, "--seeds", "4-5", "--out", folder / "runs") == 0
    return Finished(file, folder / "runs", output.getvalue())


def test_the_command_line_runs_every_seed_and_writes_the_files(finished: Finished) -> None:
    assert "done    PDPC, seed 4" in finished.output
    assert "4 of 4 points are done" in finished.output
    assert "differences to PDPC, paired over 2 seeds (4, 5)" in finished.output
    [folder] = [file.parent for file in finished.out.rglob("comparison.csv")]
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in ("comparison", "differences", "seeds", "rounds")}
    assert {name: len(table) for name, table in tables.items()} == {
        "comparison": 2, "differences": 9, "seeds": 4, "rounds": 8,
    }  # fmt: skip
    paid = tables["rounds"].pivot_table(index="seed", columns="variant", values="cost")
    cost = tables["differences"].set_index("figure").loc["cost"]
    assert cost["difference"] == pytest.approx((paid["FDPC, unconstrained"] - paid["PDPC"]).mean())
    assert tables["comparison"]["cost"].tolist() == pytest.approx(
        [paid["PDPC"].mean(), paid["FDPC, unconstrained"].mean()]
    )
    assert (folder / "comparison.png").stat().st_size > 10_000
    with redirect_stderr(StringIO()) as errors:
        assert command("figure", folder) == 2
    assert f"{folder} holds the tables of a sweep or comparison: name its TOML file" in errors.getvalue()


def test_finished_runs_are_used_again(
    finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str], in_process: InProcessPool
) -> None:
    arguments = finished.copy(tmp_path)
    both, alone = (compare(load_sweep(finished.file, seeds=seeds), tmp_path / "runs") for seeds in ([4, 5], [5]))
    assert [c.run.path for c in alone.runs] == [c.run.path for c in both.runs[2:]]
    assert alone.path != both.path
    assert len([*comparison_lines(alone)]) == 4
    assert command("sweep", *arguments) == 0
    assert "4 points, 4 of them done" in capsys.readouterr().out
    assert command(*arguments, "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert in_process.jobs == []


def test_all_variants_of_a_seed_have_the_same_traffic_and_data(finished: Finished) -> None:
    comparison = Comparison.of(load_sweep(finished.file, seeds=[4, 5]), finished.out)
    assert [(c.label, c.seed) for c in comparison.runs] == [
        ("PDPC", 4), ("FDPC, unconstrained", 4), ("PDPC", 5), ("FDPC, unconstrained", 5),
    ]  # fmt: skip
    worlds = [c.run.vehicles[["round", "cv", "distance_m", "sojourn_ns", "samples"]] for c in comparison.runs]
    pd.testing.assert_frame_equal(worlds[0], worlds[1])
    pd.testing.assert_frame_equal(worlds[2], worlds[3])
    assert not worlds[0].equals(worlds[2])
    selected, unconstrained = comparison.table()["ordered"]
    assert selected <= 3 < unconstrained


def test_fresh_runs_are_made_in_new_directories(finished: Finished, tmp_path: Path, in_process: InProcessPool) -> None:
    finished.copy(tmp_path)
    sweep = load_sweep(finished.file, seeds=[4])
    before, after = Comparison.of(sweep, finished.out), compare(sweep, tmp_path / "runs", fresh=True)
    assert [c.run.path.name for c in after.runs] == [f"{c.run.path.name}-2" for c in before.runs]
    assert [c.run.content_digest() for c in after.runs] == [c.run.content_digest() for c in before.runs]


def test_a_dry_run_lists_the_points(finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = finished.file, "--seeds", "5-6", "--dry-run", "--out"
    assert command(*arguments, finished.out) == 0
    *listed, total = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=2)[::2] for line in listed] == [
        [state, f"{label}, seed {seed}"]
        for state, seed in (("done", 5), ("waiting", 6))
        for label in ("PDPC", "FDPC, unconstrained")
    ]
    assert total.startswith("4 points, 2 of them done, about ")
    one = written(tmp_path, HEAD)  # one experiment becomes a comparison of its seeds
    assert command(one, *arguments[1:], tmp_path / "new") == 0
    assert [line.split(maxsplit=2)[2] for line in capsys.readouterr().out.splitlines()[:2]] == [
        "x, seed 5",
        "x, seed 6",
    ]
    assert not (tmp_path / "new").exists()


def test_a_variant_that_fails_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], in_process: InProcessPool
) -> None:
    file = written(tmp_path, f'{HEAD}{FAILING}[[compare]]\nlabel = "PDPC"\n')
    arguments = file, "--set", "run.rounds=1", "--out", tmp_path / "runs"
    for _ in range(2):
        assert command(*arguments) == 1
        out, error = capsys.readouterr()
        assert "\nPDPC " in out  # the table has what is done
        assert "\nMNIST" not in out
        assert error.startswith("error: 1 of 2 points failed; repeat the command to try them again:\n  MNIST, seed 1: ")
        assert "is not in /nowhere (data.dir)" in error
    assert len(in_process.jobs) == 3  # the one that failed is tried again
    with pytest.raises(RunNotFound, match="MNIST, seed 1 is not done in"):
        Comparison.of(load_sweep(file, ["run.rounds=1"]), tmp_path / "runs")


def test_an_interrupted_comparison_is_continued_by_the_same_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], in_process: InProcessPool
) -> None:
    arguments = written(tmp_path, TWO), "--set", "run.rounds=1", "--out", tmp_path / "runs"
    in_process.on_start = lambda job: os.kill(os.getpid(), signal.SIGINT)
    assert command(*arguments) == 130
    assert capsys.readouterr().err.endswith("the same command continues them\n")
    in_process.on_start = lambda job: None
    assert command(*arguments) == 0
    assert "FDPC, unconstrained" in capsys.readouterr().out
    assert len({job.digest for job in in_process.jobs}) == len(in_process.jobs) == 2
    in_process.on_start = lambda job: os.kill(os.getpid(), signal.SIGINT)
    assert command(*arguments, "--fresh") == 130
    assert capsys.readouterr().err.endswith("continue them with: python -m vefl_sim resume RUN\n")


def test_what_does_not_suit_is_refused_before_anything_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, TWO + "[sweep]\nradio.prbs = [6, 12]\n")
    assert command(file) == 2
    assert f"has a [sweep]: run it with: python -m vefl_sim sweep {file}" in capsys.readouterr().err
    with pytest.raises(BadInput, match=r"both: only \[\[compare\]\] and seeds can be compared"):
        compare(load_sweep(file), tmp_path)
    file = written(tmp_path, TWO + "[figure]\ndetect = -1\n")
    assert command(file) == 2
    assert "figure.detect = -1: it must be greater than 0." in capsys.readouterr().err


def run(accuracies: list[float | None], cost: float) -> Run:
    """The part of a run that a comparison reads; all rounds cost the same."""
    last, each = accuracies[-1], {"cost": cost, "ordered": 4, "delivered": 3, "energy_j": 7.0}
    rounds = pd.DataFrame({"round": range(1, len(accuracies) + 1), "accuracy": pd.array(accuracies, dtype="Float64")})
    summary = {"last_accuracy": last, "best_accuracy": last, "simulated_s": 10.0, "wall_s": 2.0, "rounds": len(rounds)}
    made = SimpleNamespace(
        path=Path("somewhere"),
        rounds=rounds.assign(**each),
        experiment=SimpleNamespace(learning=SimpleNamespace(loss="cross-entropy", kind="jax")),
        vehicles=pd.DataFrame({"delivered_fraction": [1.0, 0.5, None]}),
        summary=summary | {"updates_ordered": 4 * len(rounds)},
    )
    return cast(Run, made)


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


def test_a_variant_that_ordered_nobody_is_named(tmp_path: Path) -> None:
    full, empty = run([0.5], 100.0), run([0.1], 0.0)
    empty.summary["updates_ordered"] = 0
    empty.rounds["plan_status"] = "nobody_eligible"
    table = pd.DataFrame(
        {"state": ["ineligible"] * 3, "reason": ["time", "energy", "energy"], "delivered_fraction": None}
    )
    vars(empty).update(vehicles=table, experiment=load_sweep(written(tmp_path, TWO)).points[0].experiment)
    *_, line = comparison_lines(invented(tmp_path, first=[full, full], second=[full, empty]))
    assert line == (
        "warning: second ordered nobody in 1 of 2 runs, so its differences mean little: most often nobody was "
        "eligible, 2 of 3 times because a single iteration would have exceeded the energy budget (sla.energy_budget_j)"
    )


def test_a_variant_that_breaks_constraints_is_named(tmp_path: Path) -> None:
    lawful, rich, richer = run([0.5], 100.0), run([0.6], 300.0), run([0.7], 400.0)
    rich.summary["plan_breaches"], richer.summary["plan_breaches"] = {"C5": 2}, {"C1": 1, "C5": 3}
    *_, line = comparison_lines(invented(tmp_path, pdpc=[lawful, lawful], richest=[rich, richer]))
    assert line == "warning: richest violates constraints, so it is not on a par with the others: 1 × C1, 5 × C5"


def test_the_curve_is_the_mean_where_all_seeds_were_evaluated(tmp_path: Path) -> None:
    runs = [run([0.1, None, 0.4, 0.9], 1.0), run([0.3, 0.2, 0.8], 1.0)]
    curve = compared(invented(tmp_path, first=runs), "accuracy").rows
    assert curve["x"].tolist() == [1, 3]
    assert curve["mean"].tolist() == pytest.approx([0.2, 0.6])
    assert curve["std"].tolist() == pytest.approx([0.02**0.5, 0.08**0.5])  # of two values: |difference|/√2
