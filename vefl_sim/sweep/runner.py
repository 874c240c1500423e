"""Runs all points of one or more sweeps; finished points are skipped, and failed ones do not stop the rest."""

import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from vefl_sim.core.errors import BadInput, CannotWrite, RunFailed, RunInterrupted, VeflError
from vefl_sim.core.files import read_file
from vefl_sim.core.memory import cores
from vefl_sim.core.progress import counted
from vefl_sim.core.stopping import StopRequest
from vefl_sim.experiment.plugins import part_names
from vefl_sim.experiment.toml import to_toml
from vefl_sim.records.identity import package_digest
from vefl_sim.records.run_directory import Run
from vefl_sim.simulation.watcher import require_watcher
from vefl_sim.sweep.index import Index, IndexEntry
from vefl_sim.sweep.job import Job, Pool, Report
from vefl_sim.sweep.points import Point, Sweep
from vefl_sim.sweep.wall_time import wall_time_s

_ATTEMPTS = 3  # to run a point whose process dies; from the second on it runs alone
_BUSY_S = 5.0  # before trying again a run that another process works on
_INTERVAL_S = 2.0  # between two counts of the workers, and between two writes of the indexes
_POLL_S = 0.5  # longest wait for a report
_TYPICAL_MB = 900.0  # assumed for a point while none like it has been measured
_MIN_PROGRESS = 0.1  # share of a point from which its speed is estimated
_MOST_SHOWN = 5  # errors of failed points
_RESUME = "continue them with: python -m vefl_sim resume RUN"  # the same command would start afresh again


def run_sweep(
    sweep: Sweep, out: str | Path = "runs", *, workers: int | None = None, on: str | None = None
) -> pd.DataFrame:
    """Run the points that are not done, and return the index: one row per point with parameters, run and status.

    `workers`: points to run at once, by default one per core; `on`: address of a Dask cluster, or "local-cluster".
    A point that fails does not stop the others; its row contains the error.
    """
    index = Index.of(sweep, Path(out))
    Runner(Tasks.of([index], Path(out)), pool_for(on, workers or cores(), Path(out)), SweepWatcher()).run()
    return pd.read_csv(index.file)


def pool_for(on: str | None, workers: int, out: Path) -> Pool:
    """The pool that runs points below `out`: processes on this machine, or the Dask cluster that `on` names."""
    if on is None:
        return Pool(workers)
    from vefl_sim.sweep.cluster import connect

    return connect(on, workers, out)


@dataclass(kw_only=True)
class PointTask(IndexEntry):
    """A point, its row in the index, and its progress."""

    point: Point
    wall_time_s: float
    share: float = 0.0  # of its rounds that are done
    deaths: int = 0  # how often its process died or stopped without a request
    submitted: bool = False  # to the pool, which may have a queue
    not_before_s: float = 0.0  # earliest time to submit it, on the monotonic clock
    cpu_s: float | None = None  # CPU time of its run, if that is done
    pace_s: float | None = None  # measured wall time of all its rounds, at the speed of those after the first
    _warm: tuple[float, float] | None = None  # time on that clock, and share, after the first round, which compiles

    @property
    def left_s(self) -> float:
        """Expected remaining wall time, on the machine where the constants of `wall_time_s` were measured."""
        return self.wall_time_s * (1 - self.share)

    def mark_running(self) -> None:
        """Note that a worker has started on the point."""
        self.status, self._warm = "running", None

    def advance(self, share: float) -> None:
        """Note which share of its rounds is done now, and measure how fast they are."""
        if share > self.share:
            now_s = time.monotonic()
            self._warm = self._warm or (now_s, share)
            if (progress := share - self._warm[1]) >= _MIN_PROGRESS:
                self.pace_s = (now_s - self._warm[0]) / progress
        self.share = share

    def update_from(self, run: Run) -> None:
        """Set status, results and progress from the run directory."""
        self.run, self.error = run.path.name, ""
        self.status = run.state if run.state in ("done", "failed") else "stopped"
        try:
            summary = run.summary
            if run.is_done:
                run.require_complete()
        except VeflError as error:
            self.status, self.error = "failed", str(error)
            return
        if self.status == "failed":
            with suppress(OSError, IndexError):
                self.error = read_file(run.path / "FAILED").decode(errors="replace").strip().splitlines()[-1]
        self.rounds, self.content = summary.get("rounds"), summary.get("content_digest", "")
        self.accuracy, self.loss = summary.get("last_accuracy"), summary.get("last_loss")
        self.share = (self.rounds or 0) / self.point.experiment.rounds
        if run.is_done:
            self.share = 1.0
            self.cpu_s = summary.get("cpu_s", 0.0) + summary.get("prepare_cpu_s", 0.0)
            self.wall_s = summary.get("wall_s", 0.0) + summary.get("prepare_s", 0.0)


@dataclass
class Tasks:
    """All points of some sweeps, each once, with an estimate of the remaining time."""

    indexes: Sequence[Index]
    out: Path
    by_digest: dict[str, PointTask]
    fresh: bool = False  # points are run in new directories, although they may have runs
    workers: int = 1
    slowdown: float = 1.0  # by other processes on this machine, before the workers have started

    @classmethod
    def of(cls, indexes: Sequence[Index], out: Path, *, fresh: bool = False) -> "Tasks":
        """The points with the state of their runs; with `fresh` all of them wait, also those that are done."""
        tasks: dict[str, PointTask] = {}
        for index in indexes:
            points = index.sweep.points
            for point in counted(points, "looking for the runs of the points", len(points)):
                if point.digest not in tasks:
                    tasks[point.digest] = _task(point, index.previous_row(point.digest), None if fresh else out)
        return cls(indexes, out, tasks, fresh)

    def __len__(self) -> int:
        return len(self.by_digest)

    def __iter__(self) -> Iterator[PointTask]:
        return iter(self.by_digest.values())

    def having(self, *statuses: str) -> list[PointTask]:
        """Tasks with one of these statuses, those with the longest remaining time first."""
        return sorted((task for task in self if task.status in statuses), key=lambda task: -task.left_s)

    def try_again(self) -> None:
        """Set failed and stopped points to waiting, so that they are run again."""
        for task in self.having("failed", "stopped"):
            task.status, task.error = "waiting", ""

    def require_done(self) -> None:
        """Raise RunFailed with the errors of the points that failed, if there are any."""
        if failed := [task for task in self if task.status != "done"]:
            lines = [f"{len(failed)} of {len(self)} points failed; repeat the command to try them again:"]
            lines += [f"  {task.point.title}: {task.error}" for task in failed[:_MOST_SHOWN]]
            lines += [f"  … and {len(failed) - _MOST_SHOWN} more, see the index"] * (len(failed) > _MOST_SHOWN)
            raise RunFailed("\n".join(lines))

    def write_indexes(self) -> None:
        """Write the index of each sweep."""
        for index in self.indexes:
            index.write(self.by_digest)

    @property
    def factor(self) -> float:
        """Measured over expected wall time, the median of all points that were run in this session.

        Before any of them has made progress, it is the CPU time of the finished runs, or else what is expected, times
        the slowdown by other processes.
        """
        measured = [task.pace_s / task.wall_time_s for task in self if task.pace_s]
        earlier = [task.cpu_s / task.wall_time_s for task in self if task.cpu_s]
        return median(measured) if measured else median(earlier or [1.0]) * self.slowdown

    def left_s(self) -> float:
        """Expected time until all points are done: the work shared by all workers, but at least the longest point."""
        left = [task.left_s for task in self.having("running", "waiting", "stopped")]
        return self.factor * max(sum(left) / self.workers, max(left, default=0.0))

    def peak_mb(self, point: Point) -> float:
        """Peak memory that points with the same scheme and data set needed at most."""
        kind = point.experiment.scheme.kind, point.experiment.data.kind
        alike = [t for t in self if (t.point.experiment.scheme.kind, t.point.experiment.data.kind) == kind]
        return max((task.peak_mb for task in alike if task.peak_mb), default=_TYPICAL_MB)


def _task(point: Point, previous: Mapping[str, Any], out: Path | None) -> PointTask:
    """The task of a point with its row in the previous index; `out`: where its run may be."""
    task = PointTask(point=point, wall_time_s=wall_time_s(point.experiment), peak_mb=previous.get("peak_mb"))
    if out and (run := point.run(out)):
        task.update_from(run)
    if previous.get("status") == "failed" and task.status != "done":
        task.status, task.error = "failed", previous.get("error", "")
    return task


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

    def __init__(self, tasks: Tasks, pool: Pool, watcher: SweepWatcher) -> None:
        self._tasks, self._pool, self._watcher = tasks, pool, watcher
        self._stop = StopRequest(watcher.stopping)
        self._unwritten, self._updated_s = False, 0.0

    def run(self) -> None:
        """Run until every point is done or has failed; raises RunInterrupted if the user stopped it before."""
        self._tasks.try_again()
        for task in self._tasks.having("waiting"):
            _require_importable(task.point)
        try:
            self._write_first()
            with self._stop.listening():
                self._run_points()
        except KeyboardInterrupt:
            self._stop.made = True
        finally:
            self._pool.close()
            for task in self._tasks.having("running"):
                task.status = "stopped"
            broken = sys.exc_info()[0] is not None or self._tasks.having("failed")
            with suppress(CannotWrite) if broken else nullcontext():  # another error gives the reason
                self._tasks.write_indexes()
        if self._stop.made:
            again = _RESUME if self._tasks.fresh else "the same command continues them"
            raise RunInterrupted(f"finished points are kept, unfinished ones up to their last checkpoint: {again}")

    def _write_first(self) -> None:
        try:
            self._tasks.write_indexes()
        except CannotWrite as error:
            reason = getattr(error.__cause__, "strerror", None) or error
            raise BadInput(f"{self._tasks.out} cannot be used ({reason}): choose another --out.") from None

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
            if not self._tasks.fresh and (run := task.point.run(self._tasks.out)) and run.state == "running":
                task.not_before_s = time.monotonic() + _BUSY_S  # another sweep works on it
                continue
            needed_mb = math.inf if task.deaths else self._tasks.peak_mb(task.point)
            if self._pool.can_start(needed_mb, submitted):
                task.submitted = True
                submitted.append(task.point.digest)
                toml, out = to_toml(task.point.experiment), str(self._tasks.out.resolve())
                job = Job(task.point.digest, toml, out, os.getcwd(), package_digest(), self._tasks.fresh)
                self._pool.start(job, needed_mb)

    def _process(self, report: Report) -> None:
        task = self._tasks.by_digest[report.digest]
        if report.warning:
            self._watcher.warned(task, report.warning)
        if report.share is not None:
            task.advance(report.share)
        if report.state:
            task.submitted = False
            self._end(task, report)
        elif task.submitted and task.status != "running":
            task.mark_running()
        else:
            return
        self._watcher.changed(self._tasks, task)
        self._unwritten = True

    def _end(self, task: PointTask, report: Report) -> None:
        """Set the status of a point from the last report of its job; some points are tried again."""
        state, run = str(report.state), task.point.run(self._tasks.out)
        if run and (state == "done" or not self._tasks.fresh):  # else it may be an older run of the point
            task.update_from(run)
        task.status, task.error, task.peak_mb = state, report.error, report.peak_mb or task.peak_mb
        if state == "died" or (state == "stopped" and not self._stop.made):
            task.deaths += 1
            task.status = "waiting" if task.deaths < _ATTEMPTS else "failed"
        if state == "busy":
            task.status, task.not_before_s = "waiting", time.monotonic() + _BUSY_S

    def _update_if_due(self) -> None:
        """Count the workers, and write the indexes if they have changed; if that fails, runs continue."""
        if time.monotonic() - self._updated_s < _INTERVAL_S:
            return
        self._updated_s, self._tasks.workers = time.monotonic(), self._pool.size()
        if self._unwritten:
            self._unwritten = False
            with suppress(CannotWrite):
                self._tasks.write_indexes()


def _require_importable(point: Point) -> None:
    """Refuse a part of the script that runs the sweep: each point is a process of its own, which cannot import it."""
    watchers = [("run.watch", name) for name in point.experiment.run.watch or ()]
    for key, name in (*part_names(point.experiment), *watchers):
        if name.startswith("__main__:"):
            problem = "is in the script, which the processes of points cannot import: move the part to a module."
            raise BadInput(f'{key} = "{name}" {problem}')
    for _, name in watchers:
        require_watcher(name)
