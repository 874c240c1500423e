"""The points of some sweeps, each with what has become of it, and how long the rest will take."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from vefl_sim.core.errors import VeflError
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.index import Index, IndexEntry
from vefl_sim.sweep.points import Point
from vefl_sim.sweep.wall_time import wall_time_s

_TYPICAL_MB = 900.0
_SOME_WAY = 0.1  # of a point


@dataclass
class PointTask:
    """A point and what has become of it."""

    point: Point
    wall_time_s: float
    entry: IndexEntry
    share: float = 0.0
    deaths: int = 0
    given: bool = False  # to somebody, who may have a queue
    not_before_s: float = 0.0  # on the monotonic clock
    began: tuple[float, float] | None = None  # when, on that clock, and with what share

    def begin(self) -> None:
        """Somebody works on it."""
        self.entry.status, self.began = "running", (time.monotonic(), self.share)

    @property
    def left_s(self) -> float:
        """Expected, by the constants of another machine."""
        return self.wall_time_s * (1 - self.share)


@dataclass
class Tasks:
    """All points, each once, and how long they will take."""

    by_digest: dict[str, PointTask]
    workers: int = 1

    def __len__(self) -> int:
        return len(self.by_digest)

    def __iter__(self) -> Iterator[PointTask]:
        return iter(self.by_digest.values())

    def having(self, *statuses: str) -> list[PointTask]:
        """Those with one of these statuses, the longest first."""
        return sorted((task for task in self if task.entry.status in statuses), key=lambda task: -task.left_s)

    def try_again(self) -> None:
        """Those that failed or were stopped before wait like the others."""
        for task in self.having("failed", "stopped"):
            task.entry.status, task.entry.error = "waiting", ""

    @property
    def factor(self) -> float:
        """How much slower or faster things are here than expected, as far as it is known."""
        done = [task.entry.wall_s / task.wall_time_s for task in self.having("done") if task.entry.wall_s]
        return median(done or [*self._running()] or [1.0])

    def _running(self) -> Iterator[float]:
        """The same of those that have come some way."""
        for task in self.having("running"):
            if task.began and (progress := task.share - task.began[1]) >= _SOME_WAY:
                yield (time.monotonic() - task.began[0]) / (progress * task.wall_time_s)

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
    found: dict[str, PointTask] = {}
    for index in indexes:
        for point in index.sweep.points:
            if point.digest not in found:
                found[point.digest] = _task(point, index.known(point.digest), out)
    return Tasks(found)


def _task(point: Point, before: Mapping[str, object], out: Path) -> PointTask:
    entry = IndexEntry(peak_mb=before.get("peak_mb"))  # type: ignore[arg-type]
    task = PointTask(point, wall_time_s(point.experiment), entry)
    if run := point.run(out):
        look(task, run)
    if before.get("status") == "failed" and entry.status != "done":
        entry.status, entry.error = "failed", str(before.get("error", ""))
    return task


def look(task: PointTask, run: Run) -> None:
    """Take over what a run directory says."""
    entry = task.entry
    entry.error = ""
    entry.run, entry.status = run.path.name, {"done": "done", "failed": "failed"}.get(run.state, "stopped")
    try:
        summary = run.summary
        if run.is_done:
            run.require_whole()
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
