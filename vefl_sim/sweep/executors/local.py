"""The cores of this machine: one process per point, as many as there are cores and as memory allows."""

import os
import threading
from collections.abc import Collection
from queue import Empty, Queue

from vefl_sim.sweep.executors.child import work
from vefl_sim.sweep.executors.executor import Job, Report
from vefl_sim.sweep.executors.memory import fits_in_memory, used_mb


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalExecutor:
    """A thread waits for each process, and puts what it hears into one queue."""

    def __init__(self, workers: int) -> None:
        self._workers, self._reports = workers, Queue[Report]()
        self._needed: dict[str, float] = {}
        self._process: dict[str, int] = {}
        self._stop, self._leave = threading.Event(), threading.Event()

    def __str__(self) -> str:
        return f"{self._workers} process{'es' if self._workers > 1 else ''} on this machine, one thread each"

    def size(self) -> int:
        """As it was made."""
        return self._workers

    def can_start(self, needed_mb: float, running: Collection[str]) -> bool:
        """Whether a core and enough memory are free."""
        if len(running) >= self._workers:
            return False
        held = [(self._needed[digest], used_mb(self._process.get(digest, 0))) for digest in running]
        return fits_in_memory(needed_mb, held)

    def begin(self, job: Job, needed_mb: float) -> None:
        """In a process of its own."""
        self._needed[job.digest] = needed_mb
        self._reports.put(Report(job.digest))
        threading.Thread(target=self._run, args=(job,), daemon=True).start()

    def poll(self, patience_s: float) -> Report | None:
        """From any of them."""
        try:
            report = self._reports.get(timeout=patience_s)
        except Empty:
            return None
        if report.outcome:
            self._process.pop(report.digest, None)
        elif report.process:
            self._process[report.digest] = report.process
        return report

    def stop(self) -> None:
        """After their rounds."""
        self._stop.set()

    def close(self) -> None:
        """At once."""
        self._leave.set()

    def _run(self, job: Job) -> None:
        outcome = work(job, self._reports.put, self._stop.is_set, self._leave.is_set)
        self._reports.put(Report(job.digest, outcome=outcome))
