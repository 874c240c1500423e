"""Runs points on the cores of this machine: one process per point, as many at once as cores and memory allow."""

import threading
from collections.abc import Collection
from queue import Empty, Queue

from vefl_sim.core.memory import fits_in_memory, used_mb
from vefl_sim.sweep.executors.child import run_in_process
from vefl_sim.sweep.executors.executor import Job, Report


class LocalExecutor:
    """Runs each job in a process of its own; a thread per process puts its reports into one queue."""

    def __init__(self, workers: int) -> None:
        self._workers, self._reports = workers, Queue[Report]()
        self._needed_mb: dict[str, float] = {}  # by digest
        self._process: dict[str, int] = {}  # process id by digest
        self._stop, self._kill = threading.Event(), threading.Event()

    def __str__(self) -> str:
        return f"{self._workers} process{'es' if self._workers > 1 else ''} on this machine, one thread each"

    def size(self) -> int:
        """Number of processes at once."""
        return self._workers

    def can_start(self, needed_mb: float, running: Collection[str]) -> bool:
        """Whether a core and enough memory are free."""
        if len(running) >= self._workers:
            return False
        needed_and_used = [(self._needed_mb[digest], used_mb(self._process.get(digest, 0))) for digest in running]
        return fits_in_memory(needed_mb, needed_and_used)

    def start(self, job: Job, needed_mb: float) -> None:
        """Start the job in a process of its own."""
        self._needed_mb[job.digest] = needed_mb
        self._reports.put(Report(job.digest))
        threading.Thread(target=self._run, args=(job,), daemon=True).start()

    def poll(self, timeout_s: float) -> Report | None:
        """The next report of any process; None if there is none within this time."""
        try:
            report = self._reports.get(timeout=timeout_s)
        except Empty:
            return None
        if report.outcome:
            self._process.pop(report.digest, None)
        elif report.process:
            self._process[report.digest] = report.process
        return report

    def stop(self) -> None:
        """Ask all processes to save after their current round and end."""
        self._stop.set()

    def close(self) -> None:
        """Kill all processes."""
        self._kill.set()

    def _run(self, job: Job) -> None:
        outcome = run_in_process(job, self._reports.put, self._stop.is_set, self._kill.is_set)
        self._reports.put(Report(job.digest, outcome=outcome))
