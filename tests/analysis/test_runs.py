"""`python -m vefl_sim runs`: lists the runs of a folder in any state."""

import os
import time
from pathlib import Path

import pytest

from tests.resumable import STOPPED, Kill, Killer
from vefl_sim import simulate, with_settings
from vefl_sim.analysis.runs import find_run, list_runs, run_lines
from vefl_sim.core.errors import RunNotFound

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
    assert 0 < (runs["done"].accuracy or 0) < 1
    assert runs["killed"].accuracy is None
    assert runs["killed"].age_s < 3000 < runs["done"].age_s
    assert (runs["damaged"].rounds, runs["damaged"].planned) == (None, None)
    assert find_run(str(folder / "kil")).path.name == runs["killed"].name


def test_printed_lines(folder: Path) -> None:
    lines = list(run_lines(folder))
    assert lines[0].split() == ["run", "state", "rounds", "accuracy", "age"]
    assert lines[1].split()[1:3] == ["done", "2/2"]
    assert lines[1].endswith("3 h")
    assert len({len(line) for line in lines}) == 1


def test_no_runs(tmp_path: Path) -> None:
    assert list(run_lines(tmp_path)) == [f"there are no runs in {tmp_path}"]
    with pytest.raises(RunNotFound, match="is not a folder"):
        list(run_lines(tmp_path / "runs"))


def test_resume_prefers_an_unfinished_run(folder: Path) -> None:
    experiment = with_settings(NETWORK, "run.name=twice", "run.rounds=2")
    with pytest.raises(Kill):
        simulate(experiment, out=folder, watcher=Killer(2))
    simulate(experiment, out=folder, fresh=True)
    assert find_run("twice", folder).state == "done"
    assert find_run("twice", folder, unfinished=True).state == "unfinished"
