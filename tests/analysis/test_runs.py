"""`python -m vefl_sim runs`: lists the runs of a folder in any state."""

import os
import time
from pathlib import Path

import pytest

from tests.resumable import STOPPED, Kill, Killer
from vefl_sim import simulate, with_settings
from vefl_sim.analysis.runs import find_run, list_runs, run_lines
from vefl_sim.core.errors import RunNotFound
from vefl_sim.records.identity import Identity
from vefl_sim.records.run_directory import create_run

NETWORK = with_settings(STOPPED, "run.rounds=3", "learning.kind=none")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run done three hours ago, one killed in its third round, a folder without a run, and an unreadable run."""
    out = tmp_path_factory.mktemp("runs")
    done = simulate(with_settings(NETWORK, "run.name=done", "run.rounds=2", "learning.kind=jax"), out=out)
    with pytest.raises(Kill):
        simulate(with_settings(NETWORK, "run.name=killed"), out=out, watcher=Killer(3))
    (out / "notes").mkdir()
    (out / "damaged-1").mkdir()
    (out / "damaged-1" / "resolved.toml").write_text("[run]\nnonsense = 1\n")
    for path in (done.path, *done.path.iterdir()):
        os.utime(path, (time.time() - 3 * 3600,) * 2)
    return out


def test_states_progress_and_age(folder: Path) -> None:
    runs = {run.name.split("-")[0]: run for run in list_runs(folder)}
    assert next(iter(runs)) == "done"  # the oldest
    assert set(runs) == {"done", "killed", "damaged"}
    assert (runs["done"].state, runs["done"].rounds, runs["done"].planned) == ("done", 2, 2)
    assert (runs["killed"].state, runs["killed"].rounds, runs["killed"].planned) == ("unfinished", 2, 3)
    assert 0 < (runs["done"].result or 0) < 1
    assert runs["killed"].result is None
    assert runs["killed"].age_s < 3000 < runs["done"].age_s
    assert (runs["damaged"].rounds, runs["damaged"].planned) == (None, None)
    assert find_run(str(folder / "kil")).path.name == runs["killed"].name


def test_printed_lines(folder: Path) -> None:
    lines = list(run_lines(folder))
    assert lines[0].split() == ["run", "state", "scheme", "seed", "rounds", "accuracy", "age", "differs", "in"]
    assert lines[1].split()[1:5] == ["done", "pdpc", "1", "2/2"]
    assert lines[1].endswith("3 h")  # no other run of this name
    assert next(line for line in lines if "damaged-1" in line).split()[1:6] == ["damaged", "–", "–", "–", "–"]
    assert len({len(line) for line in lines[1:]} | {len(lines[0].removesuffix("  differs in"))}) == 1


def test_the_keys_that_differ_between_runs_of_the_same_name(tmp_path: Path) -> None:
    settings = [[], ["radio.prbs=5"], ["run.seed=7", "run.checkpoint_every=1"], ["scheme.kind=fdpc", "vefl.round_s=2"]]
    other = with_settings(NETWORK, "run.name=other", "radio.prbs=6")
    for experiment in (other, *(with_settings(NETWORK, *some) for some in settings)):
        create_run(Identity(experiment), tmp_path)
    lines = {line.split()[0]: line for line in run_lines(tmp_path)}
    ends = [line.partition(" s  ")[2] for name, line in lines.items() if name.startswith(NETWORK.run.name)]
    prbs, round_s = f"radio.prbs={NETWORK.radio.prbs}", f"vefl.round_s={NETWORK.vefl.round_s}"
    expected = [f"{prbs} {round_s}"] * 2 + [f"radio.prbs=5 {round_s}", f"{prbs} vefl.round_s=2.0"]
    assert sorted(ends) == sorted(expected)
    assert "prbs" not in next(line for name, line in lines.items() if name.startswith("other"))
    many = [f"sla.{key}=[1.0, 2.0]" for key in ("base_fee", "price_per_joule", "energy_budget_j")]
    create_run(Identity(with_settings(NETWORK, *many)), tmp_path)
    [line] = [line for line in run_lines(tmp_path) if "sla.base_fee=[1.0, 2.0]" in line]
    assert line.endswith("sla.price_per_joule=[1.0, 2.0] … and 1 more")


def test_no_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = "to start one: python -m vefl_sim new quickstart && python -m vefl_sim quickstart.toml"
    assert list(run_lines(tmp_path)) == [f"no runs yet in {tmp_path}; {start}"]
    with pytest.raises(RunNotFound, match="is not a folder"):
        list(run_lines(tmp_path / "runs"))  # a folder that was named
    monkeypatch.chdir(tmp_path)
    assert list(run_lines(Path("runs"))) == [f"no runs yet in runs; {start}"]  # the one that the first run creates


def test_resume_prefers_an_unfinished_run(folder: Path) -> None:
    experiment = with_settings(NETWORK, "run.name=twice", "run.rounds=2")
    with pytest.raises(Kill):
        simulate(experiment, out=folder, watcher=Killer(2))
    simulate(experiment, out=folder, fresh=True)
    assert find_run("twice", folder).state == "done"
    assert find_run("twice", folder, unfinished=True).state == "unfinished"
