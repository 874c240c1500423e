"""One point in a process of its own: how it ends, and that it ends when its parent process does."""

import json
import os
import signal
import subprocess
import threading
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.command_line import ROOT, start
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
def test_a_job_that_is_killed_or_stopped_saves_and_is_continued(tmp_path: Path) -> None:
    killed = run_in_process(job(tmp_path), lambda report: os.kill(report.process, signal.SIGKILL), never)
    assert killed.state == "died"
    assert "SIGKILL, perhaps because memory ran out" in killed.error
    long = with_settings(POINT, "run.rounds=500", "data.train_samples=3000")
    reports: list[Report] = []
    rounds = [0]
    for _ in range(2):
        stop = threading.Event()

        def on_report(report: Report, stop: threading.Event = stop) -> None:
            reports.append(report)
            if (report.share or 0.0) * 500 > rounds[-1]:
                stop.set()

        stopped = run_in_process(job(tmp_path, long), on_report, stop.is_set)
        assert stopped.state == "stopped", stopped.error
        assert stopped.peak_mb > 50
        run = existing_run(Identity(long), tmp_path)
        assert run
        rounds.append(run.summary["rounds"])
    assert 0 < rounds[1] < rounds[2] < 500
    assert {report.process for report in reports} != {0}


@pytest.mark.slow
def test_a_worker_ends_when_its_input_is_closed(tmp_path: Path) -> None:
    process = start("-m", "vefl_sim.sweep.job", stdin=subprocess.PIPE, stderr=None)
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(asdict(job(tmp_path, with_settings(POINT, "run.rounds=500")))) + "\n")
    process.stdin.flush()
    assert "share" in process.stdout.readline()
    process.stdin.close()
    assert process.wait(20) == 1
