"""Runs all points of some sweeps: what is done is skipped, what fails does not stop the rest."""

import math
import os
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Protocol

from vefl_sim.core.errors import BadInput, CannotWrite, RunInterrupted
from vefl_sim.core.stopping import StopRequest
from vefl_sim.experiment.toml import to_toml
from vefl_sim.records.identity import package_digest
from vefl_sim.sweep.executors.executor import Executor, Job, JobOutcome, Report
from vefl_sim.sweep.index import Index
from vefl_sim.sweep.tasks import PointTask, Tasks, look

_ATTEMPTS = 3  # at a point whose process dies; from the second on it runs alone
_BUSY_S = 5.0  # before asking again for a run that another process works on
_INDEX_S = 2.0  # between two writings of the index
_COUNT_S = 2.0  # between two countings of the workers
_PATIENCE_S = 0.5


class Audience(Protocol):
    """Somebody who wants to see how a sweep goes."""

    def changed(self, tasks: Tasks, task: PointTask) -> None:
        """A point has begun, or has ended."""
        ...

    def ticked(self, tasks: Tasks) -> None:
        """Some time has passed."""
        ...

    def stopping(self) -> None:
        """Somebody asked to stop; called from within a signal handler."""
        ...


class Runner:
    """One attempt to get everything done."""

    def __init__(
        self, tasks: Tasks, indexes: Sequence[Index], out: Path, executor: Executor, audience: Audience
    ) -> None:
        self._tasks, self._indexes, self._out = tasks, indexes, out
        self._executor, self._audience = executor, audience
        self._stop = StopRequest(audience.stopping)
        self._unwritten, self._written_s, self._counted_s = False, 0.0, 0.0

    def run(self) -> None:
        """Until every point is done or has failed; raises RunInterrupted if it was stopped before."""
        self._tasks.try_again()
        try:
            self._write_all()
        except CannotWrite as error:
            raise BadInput(f"{error.__cause__}: choose another --out.") from None
        try:
            with self._stop.listening():
                self._work()
        except KeyboardInterrupt:
            raise RunInterrupted(_KEPT) from None
        finally:
            self._executor.close()
            self._settle()
        if self._stop.made:
            raise RunInterrupted(_KEPT)

    def _work(self) -> None:
        asked = False
        while self._given() or (self._tasks.having("waiting") and not self._stop.made):
            if self._stop.made and not asked:
                asked = True
                self._executor.stop()
            if not self._stop.made:
                self._begin()
            self._listen()
            self._count()
            self._write()
            self._audience.ticked(self._tasks)

    def _listen(self) -> None:
        """To everything that has been said, or else for a moment."""
        report = self._executor.poll(_PATIENCE_S)
        while report:
            self._take(report)
            report = self._executor.poll(0.0)

    def _count(self) -> None:
        if time.monotonic() - self._counted_s >= _COUNT_S:
            self._counted_s = time.monotonic()
            self._tasks.workers = self._executor.size()

    def _given(self) -> list[str]:
        return [task.point.digest for task in self._tasks if task.given]

    def _begin(self) -> None:
        """Give away as many as the executor takes, the longest first; one that died before may need all the memory."""
        given = self._given()
        for task in self._tasks.having("waiting"):
            if task.given:
                continue
            if not self._executor.can_start(0.0, given):
                return
            if task.not_before_s > time.monotonic() or self._others_have(task):
                continue
            needed_mb = math.inf if task.deaths else self._tasks.peak_mb(task.point)
            if self._executor.can_start(needed_mb, given):
                task.given = True
                given.append(task.point.digest)
                self._executor.begin(self._job(task), needed_mb)

    def _others_have(self, task: PointTask) -> bool:
        """Whether another sweep works on it, or has done it, as far as can be seen from here."""
        run = task.point.run(self._out)
        if run and run.is_done:
            look(task, run)
            if task.entry.status != "done":
                task.entry.status = "waiting"
                return False  # it is damaged
            self._changed(task)
        elif run and run.state == "running":
            task.not_before_s = time.monotonic() + _BUSY_S
        else:
            return False
        return True

    def _job(self, task: PointTask) -> Job:
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
            task.begin()
            self._changed(task)

    def _end(self, task: PointTask, outcome: JobOutcome) -> None:
        entry = task.entry
        if run := task.point.run(self._out):
            look(task, run)
        entry.status, entry.error = outcome.state, outcome.error
        entry.peak_mb = outcome.peak_mb or entry.peak_mb
        if outcome.state == "died" or (outcome.state == "stopped" and not self._stop.made):
            task.deaths += 1
            entry.status = "waiting" if task.deaths < _ATTEMPTS else "failed"
        if outcome.state == "busy":
            entry.status, task.not_before_s = "waiting", time.monotonic() + _BUSY_S

    def _changed(self, task: PointTask) -> None:
        self._audience.changed(self._tasks, task)
        self._unwritten = True

    def _write(self) -> None:
        """The indexes. If they cannot be written, runs may still go on: it is tried again, at the latest at the end."""
        if self._unwritten and time.monotonic() - self._written_s >= _INDEX_S:
            self._unwritten, self._written_s = False, time.monotonic()
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
