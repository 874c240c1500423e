"""Sweeps whose points run in the process of the test, without the seconds that a process of their own takes."""

from collections.abc import Callable, Collection
from io import StringIO

import pytest

from vefl_sim.sweep import run_sweep
from vefl_sim.sweep.executors import worker
from vefl_sim.sweep.executors.executor import Job, JobOutcome, Report


def run_here(job: Job, *_: object) -> JobOutcome:
    """Run a job as its worker does, but in the process of the test; it reports nothing and cannot be stopped."""
    return JobOutcome(*worker._run(job, worker.ReportWriter(StringIO(), job.digest)))


class InProcessExecutor:
    """Runs each job when it is started; `on_start` is called before."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.on_start: Callable[[Job], None] = lambda job: None
        self._reports: list[Report] = []

    def __str__(self) -> str:
        return "the process of the test"

    def size(self) -> int:
        return 1

    def can_start(self, needed_mb: float, running: Collection[str]) -> bool:
        return not running

    def start(self, job: Job, needed_mb: float) -> None:
        self.jobs.append(job)
        self.on_start(job)
        self._reports += [Report(job.digest), Report(job.digest, outcome=run_here(job))]

    def poll(self, timeout_s: float) -> Report | None:
        return self._reports.pop(0) if self._reports else None

    def stop(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> InProcessExecutor:
    """The executor that sweeps of this test use instead of processes on this machine."""
    executor = InProcessExecutor()
    monkeypatch.setattr(run_sweep, "LocalExecutor", lambda workers: executor)
    return executor
