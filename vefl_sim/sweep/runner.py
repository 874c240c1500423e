"""Runs all points of one or more sweeps; finished points are skipped, and failed ones do not stop the rest."""

import math
import os
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from vefl_sim.core.errors import BadInput, CannotWrite, RunInterrupted
from vefl_sim.core.stopping import StopRequest
from vefl_sim.experiment.plugins import part_names
from vefl_sim.experiment.toml import to_toml
from vefl_sim.records.identity import package_digest
from vefl_sim.simulation.watcher import require_watcher
from vefl_sim.sweep.executors.executor import Executor, Job, JobOutcome, Report
from vefl_sim.sweep.index import Index
from vefl_sim.sweep.points import Point
from vefl_sim.sweep.tasks import PointTask, Tasks, update_from_run

_ATTEMPTS = 3  # to run a point whose process dies; from the second on it runs alone
_BUSY_S = 5.0  # before trying again a run that another process works on
_WRITE_INTERVAL_S = 2.0  # between two writes of the indexes
_COUNT_INTERVAL_S = 2.0  # between two counts of the workers
_POLL_S = 0.5  # longest wait for a report


class SweepWatcher:
    """Callbacks that report the progress of a sweep; these do nothing."""

    def changed(self, tasks: Tasks, task: PointTask) -> None:
        """Called when a point has started or ended."""

    def warned(self, task: PointTask, sentence: str) -> None:
        """Called when something went wrong that does not stop the point: one of its watchers has failed."""

    def ticked(self, tasks: Tasks) -> None:
        """Called about twice a second while points run."""

    def stopping(self) -> None:
        """Called when the user asks to stop, from within a signal handler."""


class Runner:
    """Runs the waiting points of some sweeps on an executor, and keeps the indexes up to date."""

    def __init__(
        self, tasks: Tasks, indexes: Sequence[Index], out: Path, executor: Executor, watcher: SweepWatcher
    ) -> None:
        self._tasks, self._indexes, self._out = tasks, indexes, out
        self._executor, self._watcher = executor, watcher
        self._stop = StopRequest(watcher.stopping)
        self._unwritten, self._written_s, self._counted_s = False, 0.0, 0.0

    def run(self) -> None:
        """Run until every point is done or has failed; raises RunInterrupted if the user stopped it before."""
        self._tasks.try_again()
        for task in self._tasks.having("waiting"):
            _require_importable(task.point)
        try:
            self._write_all()
        except CannotWrite as error:
            raise BadInput(f"{error.__cause__}: choose another --out.") from None
        try:
            with self._stop.listening():
                self._run_points()
        except KeyboardInterrupt:
            raise self._interrupted() from None
        finally:
            self._executor.close()
            self._write_final()
        if self._stop.made:
            raise self._interrupted()

    def _interrupted(self) -> RunInterrupted:
        again = _RESUME if any(task.fresh for task in self._tasks) else "the same command continues them"
        return RunInterrupted(f"finished points are kept, unfinished ones up to their last checkpoint: {again}")

    def _run_points(self) -> None:
        stopping = False
        while self._submitted() or (self._tasks.having("waiting") and not self._stop.made):
            if self._stop.made and not stopping:
                stopping = True
                self._executor.stop()
            if not self._stop.made:
                self._submit()
            self._process_reports()
            self._count_workers()
            self._write_if_due()
            self._watcher.ticked(self._tasks)

    def _process_reports(self) -> None:
        """Process all reports of the executor; wait a moment if there are none."""
        report = self._executor.poll(_POLL_S)
        while report:
            self._process(report)
            report = self._executor.poll(0.0)

    def _count_workers(self) -> None:
        if time.monotonic() - self._counted_s >= _COUNT_INTERVAL_S:
            self._counted_s = time.monotonic()
            self._tasks.workers = self._executor.size()

    def _submitted(self) -> list[str]:
        """Digests of the points that the executor has."""
        return [task.point.digest for task in self._tasks if task.submitted]

    def _submit(self) -> None:
        """Submit as many points as the executor can start, the longest first.

        A point whose process died before runs alone, because it may need all the memory.
        """
        submitted = self._submitted()
        for task in self._tasks.having("waiting"):
            if task.submitted:
                continue
            if not self._executor.can_start(0.0, submitted):
                return
            if task.not_before_s > time.monotonic() or self._is_run_elsewhere(task):
                continue
            needed_mb = math.inf if task.deaths else self._tasks.peak_mb(task.point)
            if self._executor.can_start(needed_mb, submitted):
                task.submitted = True
                submitted.append(task.point.digest)
                self._executor.start(self._job(task), needed_mb)

    def _is_run_elsewhere(self, task: PointTask) -> bool:
        """Whether another sweep works on the point or has finished it, as far as the run directory shows."""
        run = None if task.fresh else task.point.run(self._out)
        if run and run.is_done:
            update_from_run(task, run)
            if task.entry.status != "done":
                task.entry.status = "waiting"
                return False  # the run is damaged
            self._changed(task)
        elif run and run.state == "running":
            task.not_before_s = time.monotonic() + _BUSY_S
        else:
            return False
        return True

    def _job(self, task: PointTask) -> Job:
        toml, out = to_toml(task.point.experiment), str(self._out.resolve())
        return Job(task.point.digest, toml, out, os.getcwd(), package_digest(), task.fresh, task.fresh_run)

    def _process(self, report: Report) -> None:
        task = self._tasks.by_digest[report.digest]
        if report.outcome:
            task.submitted = False
            self._end(task, report.outcome)
            self._changed(task)
            return
        if report.warning:
            self._watcher.warned(task, report.warning)
        if report.share is not None:
            task.advance(report.share)
        task.fresh_run = report.run if task.fresh and report.run else task.fresh_run
        if task.submitted and task.entry.status != "running":
            task.mark_running()
            self._changed(task)

    def _end(self, task: PointTask, outcome: JobOutcome) -> None:
        """Set the status of a point from the outcome of its job; some points are tried again."""
        entry = task.entry
        run = task.point.run(self._out)
        if run and (outcome.state == "done" or not task.fresh):  # else it may be an older run of the point
            update_from_run(task, run)
        entry.status, entry.error = outcome.state, outcome.error
        entry.peak_mb = outcome.peak_mb or entry.peak_mb
        if outcome.state == "died" or (outcome.state == "stopped" and not self._stop.made):
            task.deaths += 1
            entry.status = "waiting" if task.deaths < _ATTEMPTS else "failed"
        if outcome.state == "busy":
            entry.status, task.not_before_s = "waiting", time.monotonic() + _BUSY_S

    def _changed(self, task: PointTask) -> None:
        self._watcher.changed(self._tasks, task)
        self._unwritten = True

    def _write_if_due(self) -> None:
        """Write the indexes if they have changed; if that fails, runs continue, and the last write is at the end."""
        if self._unwritten and time.monotonic() - self._written_s >= _WRITE_INTERVAL_S:
            self._unwritten, self._written_s = False, time.monotonic()
            with suppress(CannotWrite):
                self._write_all()

    def _write_all(self) -> None:
        entries = {digest: task.entry for digest, task in self._tasks.by_digest.items()}
        for index in self._indexes:
            index.write(entries)

    def _write_final(self) -> None:
        """Write the indexes for the last time; points that were still running are stopped now."""
        for task in self._tasks.having("running"):
            task.entry.status = "stopped"
        with suppress(CannotWrite) if self._tasks.having("failed") else nullcontext():  # their errors give the reason
            self._write_all()


_RESUME = "continue them with: python -m vefl_sim resume RUN"  # the same command would start afresh again


def _require_importable(point: Point) -> None:
    """Refuse a part of the script that runs the sweep: each point is a process of its own, which cannot import it."""
    watchers = [("run.watch", name) for name in point.experiment.run.watch or ()]
    for key, name in (*part_names(point.experiment), *watchers):
        if name.startswith("__main__:"):
            raise BadInput(
                f'{key} = "{name}" is in the script, but points are run by other processes: move the part '
                f"to a module of its own."
            )
    for _, name in watchers:
        require_watcher(name)
