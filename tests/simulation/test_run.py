"""How a run starts: one directory per configuration, and its identity and file read once."""

import json
import os
import subprocess
import sys
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from shutil import rmtree

import pytest
import tomli_w

from tests.mobility.recorded.recordings import DATA
from tests.mobility.sumo.towns import grid_net
from tests.protocol.test_golden import EXPERIMENT
from tests.resumable import only
from vefl_sim import BadInput, Experiment, Run, RunFailed, RunWatcher, from_tables, simulate
from vefl_sim.cli.main import main
from vefl_sim.core.errors import RunLocked
from vefl_sim.experiment.toml import to_toml
from vefl_sim.mobility.recorded import recording
from vefl_sim.records import run_directory
from vefl_sim.records.identity import Identity
from vefl_sim.records.lock import locked
from vefl_sim.records.run_directory import create_run
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


def test_two_that_start_at_once_share_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither sees the directory of the other before it creates its own."""
    monkeypatch.setattr(run_directory, "existing_run", lambda *_: None)
    first = simulate(short(), out=tmp_path)
    assert simulate(short(), out=tmp_path).path == first.path == only(tmp_path).path


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


def test_a_run_that_another_process_removes_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process finds bad input and removes the run just when this one wants to lock it."""
    create_run(Identity(short()), tmp_path)
    original = run_module.locked

    def removed_first(path: Path, versions: dict[str, object]) -> AbstractContextManager[None]:
        monkeypatch.setattr(run_module, "locked", original)
        rmtree(path)
        return original(path, versions)

    monkeypatch.setattr(run_module, "locked", removed_first)
    assert simulate(short(), out=tmp_path).path == only(tmp_path).path


def test_a_run_that_is_removed_and_created_again_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its lock a run is not worked on, although it is there again, and the lock of the others stays."""
    identity = Identity(short())
    run = create_run(identity, tmp_path)
    answers = iter([False])  # when looked at for the first time

    def exists(path: Path) -> bool:
        return next(answers, True) if path.name == "resolved.toml" else os.path.exists(path)

    with locked(run.path, {}):
        monkeypatch.setattr(Path, "exists", exists)
        with run_module._working_on(run, identity) as is_there:
            assert not is_there
        monkeypatch.undo()
        assert (run.path / "LOCK").exists()


def test_a_directory_that_loses_its_resolved_toml_keeps_its_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = create_run(Identity(short()), tmp_path).path
    original = run_module.locked

    def damaged_first(path: Path, versions: dict[str, object]) -> AbstractContextManager[None]:
        monkeypatch.setattr(run_module, "locked", original)
        (path / "resolved.toml").unlink()
        (path / "versions.json").unlink()  # so that it cannot be resumed
        return original(path, versions)

    monkeypatch.setattr(run_module, "locked", damaged_first)
    run = simulate(short(), out=tmp_path)
    assert run.is_done
    assert run.path != damaged
    assert (damaged / "experiment.toml").exists()


def test_bad_input_leaves_no_new_folders(tmp_path: Path) -> None:
    bad = from_tables(SHORT | {"data": {"kind": "folder", "dir": str(tmp_path / "missing")}})
    with pytest.raises(BadInput):
        simulate(bad, out=tmp_path / "a" / "b")
    assert [*tmp_path.iterdir()] == []


def test_a_recording_is_digested_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digested, original = [], recording.recording_digest

    def counted(file: str) -> str:
        digested.append(file)
        return original(file)

    monkeypatch.setattr(recording, "recording_digest", counted)
    mobility = {"kind": "playback", "file": str(DATA / "grid_fcd.parquet")}
    simulate(from_tables(SHORT | {"mobility": mobility}), out=tmp_path)
    assert len(digested) == 1


def test_the_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, read, original = tmp_path / "short.toml", [], os.open
    file.write_text('run = {name = "short", rounds = 1}\nlearning.kind = "none"\ndata.train_samples = 2000\n')

    def counted(path: Path, *args: int, **options: int) -> int:
        read.append(path)
        return original(path, *args, **options)

    monkeypatch.setattr(os, "open", counted)
    with pytest.raises(SystemExit, match="0"):
        main([str(file), "--out", str(tmp_path / "runs"), "--quiet"])
    assert read.count(file) == 1
    assert (only(tmp_path / "runs").path / "experiment.toml").read_text() == file.read_text()


class Waiting(RunWatcher):
    """A watcher that holds up the run until the others that started with it have ended."""

    def __init__(self, others_ended: threading.Event) -> None:
        self._others_ended = others_ended

    def preparing(self, experiment: Experiment) -> None:
        assert self._others_ended.wait(timeout=60)


MOBILITY = {
    "grid": {},
    "recorded": {"kind": "playback", "file": str(DATA / "grid_fcd.parquet")},
    "own": {"kind": "tests.scripted:ThreeCars"},
    "map": {"kind": "sumo", "start_s": 20.0},
}


@pytest.mark.parametrize("kind", MOBILITY)
def test_eight_that_start_at_once_are_one_run(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
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
            runs.append(simulate(experiment, out=tmp_path, watcher=Waiting(ended)))
        except RunLocked as error:
            errors.append(str(error))
        if len(errors) == 7:
            ended.set()

    monkeypatch.setattr(run_directory, "existing_run", look_together)
    monkeypatch.setattr(Path, "rename", note_directories)
    mobility, traffic = dict[str, object](MOBILITY[kind]), {}
    if kind == "map":
        mobility["file"], traffic["arrivals_per_s"] = str(grid_net(tmp_path_factory.mktemp("map"))), 0.6
    experiment = from_tables(SHORT | {"mobility": mobility, "traffic": traffic})
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


@pytest.mark.slow
def test_eight_commands_at_once_are_one_run(tmp_path: Path) -> None:
    """Seven say who runs it or, if it is finished when they look, show its summary."""
    toml = tmp_path / "short.toml"
    toml.write_text(to_toml(from_tables(SHORT | {"run": {"name": "short", "rounds": 40}})))
    command = [sys.executable, "-m", "vefl_sim", str(toml), "--out", str(tmp_path / "runs")]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    answers = [(process.communicate()[1], process.returncode) for process in processes]
    assert only(tmp_path / "runs").is_done
    assert len((only(tmp_path / "runs").path / "sessions.jsonl").read_text().splitlines()) == 1
    for printed, code in answers:
        assert code == 0 or (code == 2 and "is being run by process" in printed), printed
    assert 2 in {code for _, code in answers}


def test_a_path_can_be_simulated(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(tomli_w.dumps(EXPERIMENT))
    run = simulate(str(file), out=tmp_path, settings={"run.rounds": 1})
    assert (run.summary["rounds"], run.experiment.run.name) == (1, EXPERIMENT["run"]["name"])
    assert (run.path / "experiment.toml").read_text() == file.read_text()
    assert json.loads((run.path / "versions.json").read_text())["set"] == ["run.rounds=1"]
