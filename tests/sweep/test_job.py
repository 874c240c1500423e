"""One point in a process of its own: how it ends, and that it ends when its parent process does."""

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.resumable import STOPPED
from tests.sweep.conftest import run_here
from vefl_sim import simulate
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.toml import to_toml, with_settings
from vefl_sim.records.identity import Identity, config_digest, package_digest
from vefl_sim.records.run_directory import existing_run
from vefl_sim.sweep import job as jobs
from vefl_sim.sweep.job import Job, Report, run_in_process

POINT = with_settings(STOPPED, "learning.kind=none", "run.rounds=3", "trace.slots=off")


def job(out: Path, experiment: Experiment = POINT) -> Job:
    """A job that runs an experiment below `out`."""
    return Job(config_digest(experiment), to_toml(experiment), str(out), str(ROOT), package_digest())


def never() -> bool:
    return False


def test_what_prevents_a_process_is_the_error_of_its_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = run_in_process(replace(job(tmp_path), out="/not/there"), print, never)
    assert (report.state, report.error.split(":")[0]) == ("failed", "/not/there does not exist")
    old = run_here(replace(job(tmp_path), source="old"))
    assert old.state == "failed"
    assert "other sources of vefl_sim" in old.error

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(jobs.tempfile, "TemporaryFile", full)
    assert run_in_process(job(tmp_path), print, never).state == "failed"


def test_a_damaged_run_is_renamed_and_run_again(tmp_path: Path) -> None:
    damaged = simulate(POINT, out=tmp_path)
    (damaged.path / "summary.json").write_text("{")
    assert run_here(job(tmp_path)) == Report(job(tmp_path).digest, "done", damaged.path.name)
    whole = existing_run(Identity(POINT), tmp_path)
    assert whole is not None
    assert whole.summary["rounds"] == 3
    assert len([*tmp_path.glob("*.damaged1")]) == 1


@pytest.mark.slow
def test_a_job_that_is_killed_or_stopped_says_so_and_saves(tmp_path: Path) -> None:
    killed = run_in_process(job(tmp_path), lambda report: os.kill(report.process, signal.SIGKILL), never)
    assert killed.state == "died"
    assert "SIGKILL, perhaps because memory ran out" in killed.error
    long, stop = with_settings(POINT, "run.rounds=500", "data.train_samples=3000"), threading.Event()
    stopped = run_in_process(job(tmp_path, long), lambda report: stop.set() if report.share else None, stop.is_set)
    assert stopped.state == "stopped", stopped.error
    assert stopped.peak_mb > 50
    run = existing_run(Identity(long), tmp_path)
    assert run
    assert 0 < run.summary["rounds"] < 500
