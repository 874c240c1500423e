"""Sweeps whose points run in the process of the test, without the seconds that a process of their own takes."""

from collections.abc import Callable, Collection
from io import StringIO

import pytest

from vefl_sim.sweep import runner
from vefl_sim.sweep.job import Job, Pool, Report, ReportWriter, run_job


def run_here(job: Job, *_: object) -> Report:
    """Run a job as its process does, but in the process of the test; it reports nothing and cannot be stopped."""
    return Report(job.digest, *run_job(job, ReportWriter(StringIO(), job.digest)))


class InProcessPool(Pool):
    """Runs each job when it is started; `on_start` is called before."""

    def __init__(self) -> None:
        super().__init__(1)
        self.jobs: list[Job] = []
        self.on_start: Callable[[Job], None] = lambda job: None

    def can_start(self, needed_mb: float, running: Collection[str]) -> bool:
        return not running

    def start(self, job: Job, needed_mb: float) -> None:
        self.jobs.append(job)
        self.on_start(job)
        for report in (Report(job.digest), Report(job.digest, share=0.5), self.end(job)):
            self._reports.put(report)

    def end(self, job: Job) -> Report:
        """The report of the end of a job."""
        return run_here(job)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> InProcessPool:
    """The pool that sweeps of this test use instead of processes on this machine."""
    pool = InProcessPool()
    monkeypatch.setattr(runner, "Pool", lambda workers: pool)
    return pool
