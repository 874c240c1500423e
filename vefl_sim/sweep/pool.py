"""Runs points on the cores of this machine: one process per point, as many at once as cores and memory allow."""

import threading
from collections.abc import Collection
from queue import Empty, Queue

from vefl_sim.core.memory import fits_in_memory, used_mb
from vefl_sim.sweep.job import Job, Report, run_in_process


class Pool:
    """Runs each job in a process of its own; a thread per process puts its reports into one queue.

    Every job that is started ends with exactly one report with a state.
    """

    def __init__(self, workers: int) -> None:
        self._workers, self._reports = workers, Queue[Report]()
        self._needed_mb: dict[str, float] = {}  # by digest
        self._process: dict[str, int] = {}  # process id by digest
        self._stop, self._kill = threading.Event(), threading.Event()

    def __str__(self) -> str:
        return f"{self._workers} process{'es' if self._workers > 1 else ''} on this machine, one thread each"

    def size(self) -> int:
        """Number of points that can run at once; it may change."""
        return self._workers

    def can_start(self, needed_mb: float, running: Collection[str]) -> bool:
        """Whether another job that needs this much memory can start beside those that run, given by their digests."""
        needed_and_used = [(self._needed_mb[digest], used_mb(self._process.get(digest, 0))) for digest in running]
        return len(running) < self._workers and fits_in_memory(needed_mb, needed_and_used)

    def start(self, job: Job, needed_mb: float) -> None:
        """Start a job."""
        self._needed_mb[job.digest] = needed_mb
        self._process.pop(job.digest, None)
        self._reports.put(Report(job.digest))
        threading.Thread(target=self._run, args=(job,), daemon=True).start()

    def _run(self, job: Job) -> None:
        self._reports.put(run_in_process(job, self._reports.put, self._stop.is_set, self._kill.is_set))

    def poll(self, timeout_s: float) -> Report | None:
        """The next report of any job; None if there is none within this time."""
        try:
            report = self._reports.get(timeout=timeout_s)
        except Empty:
            return None
        if report.process:
            self._process[report.digest] = report.process
        return report

    def stop(self) -> None:
        """Ask all jobs to save after their current round and end."""
        self._stop.set()

    def close(self) -> None:
        """End all jobs at once and release the workers."""
        self._kill.set()
