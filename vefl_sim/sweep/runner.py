"""Runs all points of one or more sweeps; finished points are skipped, and failed ones do not stop the rest."""

import math
import os
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

import pandas as pd

from vefl_sim.core.errors import BadInput, CannotWrite, RunInterrupted
from vefl_sim.core.memory import cores
from vefl_sim.core.stopping import StopRequest
from vefl_sim.experiment.plugins import part_names
from vefl_sim.experiment.toml import to_toml
from vefl_sim.records.identity import package_digest
from vefl_sim.simulation.watcher import require_watcher
from vefl_sim.sweep.index import Index
from vefl_sim.sweep.job import Job, Report
from vefl_sim.sweep.points import Point, Sweep
from vefl_sim.sweep.pool import Pool
from vefl_sim.sweep.tasks import PointTask, Tasks

_ATTEMPTS = 3  # to run a point whose process dies; from the second on it runs alone
_BUSY_S = 5.0  # before trying again a run that another process works on
_INTERVAL_S = 2.0  # between two counts of the workers, and between two writes of the indexes
_POLL_S = 0.5  # longest wait for a report
_RESUME = "continue them with: python -m vefl_sim resume RUN"  # the same command would start afresh again


def run_sweep(
    sweep: Sweep, out: str | Path = "runs", *, workers: int | None = None, on: str | None = None
) -> pd.DataFrame:
    """Run the points that are not done, and return the index: one row per point with parameters, run and status.

    `workers`: points to run at once, by default one per core; `on`: address of a Dask cluster, or "local-cluster".
    A point that fails does not stop the others; its row contains the error.
    """
    index = Index.of(sweep, Path(out))
    run_quietly(index, Path(out), pool_for(on, workers or cores(), Path(out)))
    return pd.read_csv(index.file)


def run_quietly(index: Index, out: Path, pool: Pool, *, fresh: bool = False) -> Tasks:
    """Run the points of a sweep that are not done, or with `fresh` all of them, without a progress display."""
    tasks = Tasks.of([index], out)
    if fresh:
        tasks.start_afresh()
    Runner(tasks, [index], out, pool, SweepWatcher()).run()
    return tasks


def pool_for(on: str | None, workers: int, out: Path) -> Pool:
    """The pool that runs points below `out`: processes on this machine, or the Dask cluster that `on` names."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{out} cannot be created ({error.strerror}): choose another --out.") from None
    if on is None:
        return Pool(workers)
    from vefl_sim.sweep.cluster import connect

    return connect(on, workers, out)


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
    """Runs the waiting points of some sweeps on a pool, and keeps the indexes up to date."""

    def __init__(self, tasks: Tasks, indexes: Sequence[Index], out: Path, pool: Pool, watcher: SweepWatcher) -> None:
        self._tasks, self._indexes, self._out = tasks, indexes, out
        self._pool, self._watcher = pool, watcher
        self._stop = StopRequest(watcher.stopping)
        self._unwritten, self._updated_s = False, 0.0

    def run(self) -> None:
        """Run until every point is done or has failed; raises RunInterrupted if the user stopped it before."""
        self._tasks.try_again()
        for task in self._tasks.having("waiting"):
            _require_importable(task.point)
        try:
            self._write_indexes()
        except CannotWrite as error:
            raise BadInput(f"{error.__cause__}: choose another --out.") from None
        try:
            with self._stop.listening():
                self._run_points()
        except KeyboardInterrupt:
            self._stop.made = True
        finally:
            self._pool.close()
            self._write_final()
        if self._stop.made:
            again = _RESUME if any(task.fresh for task in self._tasks) else "the same command continues them"
            raise RunInterrupted(f"finished points are kept, unfinished ones up to their last checkpoint: {again}")

    def _run_points(self) -> None:
        stopping = False
        while self._submitted() or (self._tasks.having("waiting") and not self._stop.made):
            if self._stop.made and not stopping:
                stopping = True
                self._pool.stop()
            if not self._stop.made:
                self._submit()
            report = self._pool.poll(_POLL_S)
            while report:
                self._process(report)
                report = self._pool.poll(0.0)
            self._update_if_due()
            self._watcher.ticked(self._tasks)

    def _submitted(self) -> list[str]:
        """Digests of the points that the pool has."""
        return [task.point.digest for task in self._tasks if task.submitted]

    def _submit(self) -> None:
        """Submit as many points as the pool can start, the longest first.

        A point whose process died before runs alone, because it may need all the memory.
        """
        submitted = self._submitted()
        for task in self._tasks.having("waiting"):
            if not self._pool.can_start(0.0, submitted):
                return
            if task.submitted or task.not_before_s > time.monotonic():
                continue
            if not task.fresh and (run := task.point.run(self._out)) and run.state == "running":
                task.not_before_s = time.monotonic() + _BUSY_S  # another sweep works on it
                continue
            needed_mb = math.inf if task.deaths else self._tasks.peak_mb(task.point)
            if self._pool.can_start(needed_mb, submitted):
                task.submitted = True
                submitted.append(task.point.digest)
                self._pool.start(self._job(task), needed_mb)

    def _job(self, task: PointTask) -> Job:
        toml, out = to_toml(task.point.experiment), str(self._out.resolve())
        return Job(task.point.digest, toml, out, os.getcwd(), package_digest(), task.fresh, task.fresh_run)

    def _process(self, report: Report) -> None:
        task = self._tasks.by_digest[report.digest]
        if report.state:
            task.submitted = False
            self._end(task, report)
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

    def _end(self, task: PointTask, report: Report) -> None:
        """Set the status of a point from the last report of its job; some points are tried again."""
        entry, state = task.entry, str(report.state)
        run = task.point.run(self._out)
        if run and (state == "done" or not task.fresh):  # else it may be an older run of the point
            task.update_from(run)
        entry.status, entry.error = state, report.error
        entry.peak_mb = report.peak_mb or entry.peak_mb
        task.pace_s = entry.wall_s if state == "done" and task.pace_s else task.pace_s
        if state == "died" or (state == "stopped" and not self._stop.made):
            task.deaths += 1
            entry.status = "waiting" if task.deaths < _ATTEMPTS else "failed"
        if state == "busy":
            entry.status, task.not_before_s = "waiting", time.monotonic() + _BUSY_S

    def _changed(self, task: PointTask) -> None:
        self._watcher.changed(self._tasks, task)
        self._unwritten = True

    def _update_if_due(self) -> None:
        """Count the workers, and write the indexes if they have changed; if that fails, runs continue."""
        if time.monotonic() - self._updated_s < _INTERVAL_S:
            return
        self._updated_s, self._tasks.workers = time.monotonic(), self._pool.size()
        if self._unwritten:
            self._unwritten = False
            with suppress(CannotWrite):
                self._write_indexes()

    def _write_indexes(self) -> None:
        entries = {digest: task.entry for digest, task in self._tasks.by_digest.items()}
        for index in self._indexes:
            index.write(entries)

    def _write_final(self) -> None:
        """Write the indexes for the last time; points that were still running are stopped now."""
        for task in self._tasks.having("running"):
            task.entry.status = "stopped"
        with suppress(CannotWrite) if self._tasks.having("failed") else nullcontext():  # their errors give the reason
            self._write_indexes()


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
