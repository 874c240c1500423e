"""One point in a process of its own: how it ends, and that it ends when its parent process does."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from tests.command_line import ROOT, start
from tests.resumable import STOPPED, Kill, Killer
from tests.sweep.conftest import run_here
from vefl_sim import simulate
from vefl_sim.experiment.toml import to_toml, with_settings
from vefl_sim.records.identity import Identity, config_digest, package_digest
from vefl_sim.records.run_directory import existing_run
from vefl_sim.sweep.executors import child, worker
from vefl_sim.sweep.executors.child import run_in_process
from vefl_sim.sweep.executors.executor import Job, JobOutcome, Report

POINT = with_settings(STOPPED, "learning.kind=none", "run.rounds=20", "trace.slots=off")


def job(out: Path) -> Job:
    """A job that runs the point below `out`."""
    return Job(config_digest(POINT), to_toml(POINT), str(out), str(ROOT), package_digest())


def never() -> bool:
    return False


def test_jobs_and_reports_survive_serialization(tmp_path: Path) -> None:
    assert Job.from_json(job(tmp_path).to_json()) == job(tmp_path)
    assert Report.from_dict({"digest": "d", "outcome": {"state": "done", "run": "r"}}).outcome == JobOutcome(
        "done", "r"
    )


def test_a_missing_working_folder(tmp_path: Path) -> None:
    outcome = run_in_process(replace(job(tmp_path), cwd="/not/there"), print, never)
    assert (outcome.state, outcome.error.split(":")[0]) == ("failed", "/not/there does not exist")


def test_a_process_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(child.tempfile, "TemporaryFile", full)
    assert run_in_process(job(tmp_path), print, never).state == "failed"


def test_a_fresh_run_is_resumed_beside_the_finished_one(tmp_path: Path) -> None:
    short = with_settings(POINT, "run.rounds=3")
    done = simulate(short, out=tmp_path)
    with pytest.raises(Kill):
        simulate(short, out=tmp_path, fresh=True, watcher=Killer(3))
    again, reports = f"{done.path.name}-2", StringIO()
    fresh = Job(config_digest(short), to_toml(short), str(tmp_path), str(ROOT), package_digest(), fresh=True, run=again)
    assert worker._run(fresh, worker.ReportWriter(reports, fresh.digest)) == ("done", again, "")
    assert [json.loads(line)["run"] for line in reports.getvalue().splitlines()] == ["", "", again]
    assert len((tmp_path / again / "sessions.jsonl").read_text().splitlines()) == 2


def test_a_damaged_run_is_renamed_and_run_again(tmp_path: Path) -> None:
    damaged = simulate(POINT, out=tmp_path)
    (damaged.path / "summary.json").write_text("{")
    assert run_here(job(tmp_path)) == JobOutcome("done", damaged.path.name)
    whole = existing_run(Identity(POINT), tmp_path)
    assert whole is not None
    assert whole.summary["rounds"] == 20
    assert len([*tmp_path.glob("*.damaged1")]) == 1


@pytest.mark.slow
def test_a_job_reports_progress_and_is_done(tmp_path: Path) -> None:
    reports: list[Report] = []
    outcome = run_in_process(job(tmp_path), reports.append, never)
    run = existing_run(Identity(POINT), tmp_path)
    assert run is not None
    assert run.is_done
    assert (outcome.state, outcome.run, outcome.error) == ("done", run.path.name, "")
    assert outcome.peak_mb > 50
    shares = [report.share for report in reports if report.share is not None]
    assert shares == sorted(shares)
    assert shares[0] == 0


@pytest.mark.slow
def test_a_killed_process_is_reported(tmp_path: Path) -> None:
    outcome = run_in_process(job(tmp_path), lambda report: os.kill(report.process, signal.SIGKILL), never)
    assert outcome.state == "died"
    assert "SIGKILL, perhaps because memory ran out" in outcome.error


@pytest.mark.slow
def test_a_stopped_job_saves_and_can_be_continued(tmp_path: Path) -> None:
    long = with_settings(POINT, "run.rounds=500", "data.train_samples=3000")
    given = Job(config_digest(long), to_toml(long), str(tmp_path), str(ROOT), package_digest())
    rounds = [0]
    for _ in range(2):
        outcome = run_in_process(given, report_to(stop := threading.Event(), 500, rounds[-1]), stop.is_set)
        assert outcome.state == "stopped", outcome.error
        run = existing_run(Identity(long), tmp_path)
        assert run
        rounds.append(run.summary["rounds"])
    assert 0 < rounds[1] < rounds[2] < 500


def report_to(stop: threading.Event, rounds: int, before: int) -> Callable[[Report], None]:
    """Ask the job to stop as soon as it reports more rounds than `before`."""

    def on_report(report: Report) -> None:
        if report.share and report.share * rounds > before:
            stop.set()

    return on_report


def test_other_sources_are_refused(tmp_path: Path) -> None:
    outcome = run_here(replace(job(tmp_path), source="old"))
    assert outcome.state == "failed"
    assert "other sources of vefl_sim" in outcome.error


@pytest.mark.slow
def test_a_worker_ends_when_its_input_is_closed(tmp_path: Path) -> None:
    process = start("-m", "vefl_sim.sweep.executors.worker", stdin=subprocess.PIPE, stderr=None)
    assert process.stdin
    assert process.stdout
    process.stdin.write(job(tmp_path).to_json() + "\n")
    process.stdin.flush()
    assert "share" in process.stdout.readline()
    process.stdin.close()
    assert process.wait(20) == 1
