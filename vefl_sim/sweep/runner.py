"""Runs all points of some sweeps: what is done is skipped, what fails does not stop the rest."""

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Protocol

from vefl_sim.errors import CannotWrite, RunInterrupted, VeflError
from vefl_sim.loading import to_toml
from vefl_sim.provenance import package_digest
from vefl_sim.results import Run
from vefl_sim.stopping import StopRequest
from vefl_sim.sweep.crew import Crew
from vefl_sim.sweep.expected import expected_s
from vefl_sim.sweep.index import Entry, Index
from vefl_sim.sweep.job import Job, Outcome, Report
from vefl_sim.sweep.points import Point

_ATTEMPTS = 3  # at a point whose process dies; from the second on it runs alone
_TYPICAL_MB = 900.0
_BUSY_S = 5.0  # before asking again for a run that another process works on
_INDEX_S = 2.0  # between two writings of the index
_PATIENCE_S = 0.5


class Audience(Protocol):
    """Somebody who wants to see how a sweep goes."""

    def changed(self, tasks: "Tasks", task: "Task") -> None:
        """A point has begun, or has ended."""
        ...

    def ticked(self, tasks: "Tasks") -> None:
        """Some time has passed."""
        ...

    def stopping(self) -> None:
        """Somebody asked to stop; called from within a signal handler."""
        ...


@dataclass
class Task:
    """A point and what has become of it."""

    point: Point
    expected_s: float
    entry: Entry
    share: float = 0.0
    deaths: int = 0
    given: bool = False  # to somebody, who may have a queue
    not_before_s: float = 0.0  # on the monotonic clock

    @property
    def left_s(self) -> float:
        """Expected, by the constants of another machine."""
        return self.expected_s * (1 - self.share)


@dataclass
class Tasks:
    """All points, each once, and how long they will take."""

    by_digest: dict[str, Task]
    workers: int = 1

    def __len__(self) -> int:
        return len(self.by_digest)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.by_digest.values())

    def having(self, *statuses: str) -> list[Task]:
        """Those with one of these statuses, the longest first."""
        return sorted((task for task in self if task.entry.status in statuses), key=lambda task: -task.left_s)

    @property
    def factor(self) -> float:
        """How much slower or faster things are here than expected, as far as it is known."""
        done = [task.entry.wall_s / task.expected_s for task in self.having("done") if task.entry.wall_s]
        return median(done) if done else 1.0

    def left_s(self) -> float:
        """Until all are done: the work on all workers, but not less than the longest point."""
        left = [task.left_s for task in self.having("running", "waiting", "stopped")]
        return self.factor * max(sum(left) / self.workers, max(left, default=0.0))

    def peak_mb(self, point: Point) -> float:
        """What a point like this needed."""
        kind = point.experiment.scheme.kind, point.experiment.data.kind
        like = [t for t in self if (t.point.experiment.scheme.kind, t.point.experiment.data.kind) == kind]
        known = [task.entry.peak_mb for task in like if task.entry.peak_mb]
        return max(known, default=_TYPICAL_MB)


def tasks_of(indexes: Sequence[Index], out: Path) -> Tasks:
    """The points of all sweeps with the state of their runs; a point that several have is one."""
    found: dict[str, Task] = {}
    for index in indexes:
        for point in index.sweep.points:
            if point.digest not in found:
                found[point.digest] = _task(point, index.known(point.digest), out)
    return Tasks(found)


def _task(point: Point, before: Mapping[str, object], out: Path) -> Task:
    entry = Entry(peak_mb=before.get("peak_mb"))  # type: ignore[arg-type]
    task = Task(point, expected_s(point.experiment), entry)
    if run := point.run(out):
        _look(task, run)
    if before.get("status") == "failed" and entry.status != "done":
        entry.status, entry.error = "failed", str(before.get("error", ""))
    return task


def _look(task: Task, run: Run) -> None:
    """Take over what a run directory says."""
    entry = task.entry
    entry.run, entry.status = run.path.name, {"done": "done", "failed": "failed"}.get(run.state, "stopped")
    try:
        summary = run.summary
    except VeflError as error:
        entry.status, entry.error = "failed", str(error)
        return
    if entry.status == "failed":
        entry.error = _last_line(run.path / "FAILED")
    entry.rounds, entry.accuracy = summary.get("rounds"), summary.get("last_accuracy")
    entry.content = summary.get("content_digest", "")
    entry.wall_s = summary.get("wall_s", 0.0) + summary.get("prepare_s", 0.0) if run.is_done else None
    task.share = 1.0 if run.is_done else (entry.rounds or 0) / task.point.experiment.rounds


def _last_line(file: Path) -> str:
    with suppress(OSError, IndexError):
        return file.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1]
    return ""


class Runner:
    """One attempt to get everything done."""

    def __init__(self, tasks: Tasks, indexes: Sequence[Index], out: Path, crew: Crew, audience: Audience) -> None:
        self._tasks, self._indexes, self._out = tasks, indexes, out
        self._crew, self._audience = crew, audience
        self._stop = StopRequest(audience.stopping)
        self._written_s = 0.0

    def run(self) -> None:
        """Until every point is done or has failed; raises RunInterrupted if it was stopped before."""
        for task in self._tasks.having("failed", "stopped"):
            task.entry.status, task.entry.error = "waiting", ""
        try:
            with self._stop.heard():
                self._work()
        except KeyboardInterrupt:
            raise RunInterrupted(_KEPT) from None
        finally:
            self._crew.close()
            self._settle()
        if self._stop.made:
            raise RunInterrupted(_KEPT)

    def _work(self) -> None:
        asked = False
        while self._given() or (self._tasks.having("waiting") and not self._stop.made):
            if self._stop.made and not asked:
                asked = True
                self._crew.stop()
            if not self._stop.made:
                self._begin()
            if report := self._crew.heard(_PATIENCE_S):
                self._take(report)
            self._tasks.workers = self._crew.size()
            self._write()
            self._audience.ticked(self._tasks)

    def _given(self) -> list[str]:
        return [task.point.digest for task in self._tasks if task.given]

    def _begin(self) -> None:
        """Give away as many as the crew takes, the longest first; one that died before may need all the memory."""
        for task in self._tasks.having("waiting"):
            if task.given or task.not_before_s > time.monotonic():
                continue
            needed_mb = math.inf if task.deaths else self._tasks.peak_mb(task.point)
            if self._crew.takes(needed_mb, self._given()):
                task.given = True
                self._crew.begin(self._job(task), needed_mb)

    def _job(self, task: Task) -> Job:
        point = task.point
        return Job(point.digest, to_toml(point.experiment), str(self._out.resolve()), os.getcwd(), package_digest())

    def _take(self, report: Report) -> None:
        task = self._tasks.by_digest[report.digest]
        if report.outcome:
            task.given = False
            self._end(task, report.outcome)
            self._changed(task)
            return
        task.share = task.share if report.share is None else report.share
        if task.given and task.entry.status != "running":
            task.entry.status = "running"
            self._changed(task)

    def _end(self, task: Task, outcome: Outcome) -> None:
        entry = task.entry
        if run := task.point.run(self._out):
            _look(task, run)
        entry.status, entry.error = outcome.state, outcome.error
        entry.peak_mb = outcome.peak_mb or entry.peak_mb
        if outcome.state == "died":
            task.deaths += 1
            entry.status = "waiting" if task.deaths < _ATTEMPTS else "failed"
        if outcome.state == "busy":
            entry.status, task.not_before_s = "waiting", time.monotonic() + _BUSY_S

    def _changed(self, task: Task) -> None:
        self._audience.changed(self._tasks, task)
        self._write(now=task.entry.status != "running")

    def _write(self, now: bool = False) -> None:
        """The indexes. If they cannot be written, runs may still go on: it is tried again, at the latest at the end."""
        if now or time.monotonic() - self._written_s >= _INDEX_S:
            self._written_s = time.monotonic()
            with suppress(CannotWrite):
                self._write_all()

    def _write_all(self) -> None:
        entries = {digest: task.entry for digest, task in self._tasks.by_digest.items()}
        for index in self._indexes:
            index.write(entries)

    def _settle(self) -> None:
        """What was at work is not any more."""
        for task in self._tasks.having("running"):
            task.entry.status = "stopped"
        with suppress(CannotWrite) if self._tasks.having("failed") else nullcontext():  # they have told why
            self._write_all()


_KEPT = "points that are done stay, and the others are kept as far as they came: the same command goes on"
