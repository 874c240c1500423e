"""How a run starts: one directory per configuration, and its identity and file read once."""

import json
import os
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from shutil import rmtree

import pytest
import tomli_w

from tests.protocol.test_golden import EXPERIMENT
from tests.resumable import only
from vefl_sim import BadInput, Experiment, Run, RunFailed, RunWatcher, from_tables, simulate
from vefl_sim.core.errors import RunLocked
from vefl_sim.records import run_directory
from vefl_sim.records.identity import Identity
from vefl_sim.simulation import run as run_module

ROOT = Path(__file__).parents[2]
SHORT = {
    "run": {"name": "short", "rounds": 1},
    "learning": {"kind": "none"},
    "model": {"factory": "vefl_models.logistic:logistic"},
    "data": {"train_samples": 600, "test_samples": 50, "min_samples": 1},
}


def short() -> Experiment:
    return from_tables(SHORT)


def test_ctrl_c_while_preparing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vefl_sim.simulation.run.build_scenario", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulate(short(), out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_bug_of_ours_is_a_failed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr("vefl_sim.simulation.run.build_scenario", broken)
    with pytest.raises(RunFailed, match="KeyError: 'ours'"):
        simulate(short(), out=tmp_path)
    assert only(tmp_path).state == "failed"


@pytest.mark.parametrize("is_bad", [False, True])
def test_a_run_that_another_process_removes_is_started_again(
    is_bad: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process finds bad input and removes the run just when this one wants to lock it."""
    experiment, original = from_tables(EXPERIMENT), run_module.locked
    if is_bad:
        experiment = from_tables(SHORT | {"data": {"kind": "folder", "dir": str(tmp_path / "missing")}})

    def removed_first(path: Path, versions: dict[str, object]) -> AbstractContextManager[None]:
        monkeypatch.setattr(run_module, "locked", original)
        rmtree(path)
        return original(path, versions)

    monkeypatch.setattr(run_module, "locked", removed_first)
    if is_bad:
        with pytest.raises(BadInput, match="missing"):
            simulate(experiment, out=tmp_path / "runs")
        assert not (tmp_path / "runs").exists()
    else:
        assert simulate(experiment, out=tmp_path / "runs").path == only(tmp_path / "runs").path


class Waiting(RunWatcher):
    """A watcher that holds up the run until the others that started with it have ended."""

    def __init__(self, others_ended: threading.Event) -> None:
        self._others_ended = others_ended

    def preparing(self, experiment: Experiment) -> None:
        assert self._others_ended.wait(timeout=60)


def test_eight_that_start_at_once_are_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All have looked for a run before one of them creates it.

    No second directory exists even for a moment: a ninth process could start to work in it.
    """
    looked, ended, runs, errors = threading.Barrier(8), threading.Event(), list[Run](), list[str]()
    original, rename, created = run_directory.existing_run, Path.rename, list[Path]()

    def note_directories(path: Path, target: Path) -> Path:
        renamed = rename(path, target)
        created.append(target)
        return renamed

    def look_together(identity: Identity, out: Path) -> Run | None:
        found = original(identity, out)
        looked.wait(timeout=60)
        return found

    def start() -> None:
        try:
            runs.append(simulate(short(), out=tmp_path, watcher=Waiting(ended)))
        except RunLocked as error:
            errors.append(str(error))
        if len(errors) == 7:
            ended.set()

    monkeypatch.setattr(run_directory, "existing_run", look_together)
    monkeypatch.setattr(Path, "rename", note_directories)
    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [run] = runs
    assert run.path == only(tmp_path).path
    assert [*tmp_path.iterdir()] == created == [run.path]
    assert len(errors) == 7
    for sentence in errors:
        assert f"{run.path} is being run by process {os.getpid()}" in sentence
        assert "wait until it ends, or use --fresh" in sentence


def test_a_path_can_be_simulated(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(tomli_w.dumps(EXPERIMENT))
    run = simulate(str(file), out=tmp_path, settings={"run.rounds": 1})
    assert (run.summary["rounds"], run.experiment.run.name) == (1, EXPERIMENT["run"]["name"])
    assert (run.path / "experiment.toml").read_text() == file.read_text()
    assert json.loads((run.path / "versions.json").read_text())["set"] == ["run.rounds=1"]
