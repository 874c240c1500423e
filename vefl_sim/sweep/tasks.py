"""The points of one or more sweeps with their progress, and an estimate of the remaining time."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from vefl_sim.core.errors import RunFailed, VeflError
from vefl_sim.core.files import read_file
from vefl_sim.core.progress import counted
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.index import Index, IndexEntry
from vefl_sim.sweep.points import Point
from vefl_sim.sweep.wall_time import wall_time_s

_TYPICAL_MB = 900.0  # assumed for a point while none like it has been measured
_MIN_PROGRESS = 0.1  # share of a point from which its speed is estimated
_MOST_SHOWN = 5  # errors of failed points


@dataclass
class PointTask:
    """A point and its progress."""

    point: Point
    wall_time_s: float
    entry: IndexEntry
    share: float = 0.0  # of its rounds that are done
    deaths: int = 0  # how often its process died or stopped without a request
    submitted: bool = False  # to the pool, which may have a queue
    fresh: bool = False  # to be run in a new directory, although it may have a run
    fresh_run: str = ""  # name of that directory, as soon as a worker has created it
    not_before_s: float = 0.0  # earliest time to submit it, on the monotonic clock
    cpu_s: float | None = None  # CPU time of its run, if that is done
    pace_s: float | None = None  # measured wall time of all its rounds, at the speed of those after the first
    _warm: tuple[float, float] | None = None  # time on that clock, and share, after the first round, which compiles

    def mark_running(self) -> None:
        """Note that a worker has started on the point."""
        self.entry.status, self._warm = "running", None

    def advance(self, share: float) -> None:
        """Note which share of its rounds is done now, and measure how fast they are."""
        if share > self.share:
            now_s = time.monotonic()
            self._warm = self._warm or (now_s, share)
            if (progress := share - self._warm[1]) >= _MIN_PROGRESS:
                self.pace_s = (now_s - self._warm[0]) / progress
        self.share = share

    @property
    def left_s(self) -> float:
        """Expected remaining wall time, on the machine where the constants of `wall_time_s` were measured."""
        return self.wall_time_s * (1 - self.share)

    def update_from(self, run: Run) -> None:
        """Set status, results and progress from the run directory."""
        entry = self.entry
        entry.run, entry.error = run.path.name, ""
        entry.status = {"done": "done", "failed": "failed"}.get(run.state, "stopped")
        try:
            summary = run.summary
            if run.is_done:
                run.require_complete()
        except VeflError as error:
            entry.status, entry.error = "failed", str(error)
            return
        if entry.status == "failed":
            entry.error = _last_line(run.path / "FAILED")
        entry.rounds, entry.content = summary.get("rounds"), summary.get("content_digest", "")
        entry.accuracy, entry.loss = summary.get("last_accuracy"), summary.get("last_loss")
        self.share = (entry.rounds or 0) / self.point.experiment.rounds
        if run.is_done:
            self.share = 1.0
            self.cpu_s = summary.get("cpu_s", 0.0) + summary.get("prepare_cpu_s", 0.0)
            entry.wall_s = summary.get("wall_s", 0.0) + summary.get("prepare_s", 0.0)


def _last_line(file: Path) -> str:
    with suppress(OSError, IndexError):
        return read_file(file).decode(errors="replace").strip().splitlines()[-1]
    return ""


@dataclass
class Tasks:
    """All points, each once, with an estimate of the remaining time."""

    by_digest: dict[str, PointTask]
    workers: int = 1
    slowdown: float = 1.0  # by other processes on this machine, before the workers have started

    @classmethod
    def of(cls, indexes: Sequence[Index], out: Path) -> "Tasks":
        """The points of all sweeps with the state of their runs; a point that several sweeps contain is one task."""
        tasks: dict[str, PointTask] = {}
        for index in indexes:
            points = index.sweep.points
            for point in counted(points, "looking for the runs of the points", len(points)):
                if point.digest not in tasks:
                    tasks[point.digest] = _task(point, index.previous_row(point.digest), out)
        return cls(tasks)

    def __len__(self) -> int:
        return len(self.by_digest)

    def __iter__(self) -> Iterator[PointTask]:
        return iter(self.by_digest.values())

    def having(self, *statuses: str) -> list[PointTask]:
        """Tasks with one of these statuses, those with the longest remaining time first."""
        return sorted((task for task in self if task.entry.status in statuses), key=lambda task: -task.left_s)

    def try_again(self) -> None:
        """Set failed and stopped points to waiting, so that they are run again."""
        for task in self.having("failed", "stopped"):
            task.entry.status, task.entry.error = "waiting", ""

    def start_afresh(self) -> None:
        """Set all points to waiting, to be run in new directories, also those that are done."""
        for task in self:
            task.entry.status, task.share, task.fresh = "waiting", 0.0, True

    def require_done(self) -> None:
        """Raise RunFailed with the errors of the points that failed, if there are any."""
        if failed := [task for task in self if task.entry.status != "done"]:
            failures = "".join(f"\n  {task.point.title}: {task.entry.error}" for task in failed[:_MOST_SHOWN])
            more = f"\n  … and {len(failed) - _MOST_SHOWN} more, see the index" if len(failed) > _MOST_SHOWN else ""
            raise RunFailed(
                f"{len(failed)} of {len(self)} points failed; repeat the command to try them again:{failures}{more}"
            )

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
        return max((task.entry.peak_mb for task in alike if task.entry.peak_mb), default=_TYPICAL_MB)


def _task(point: Point, previous: Mapping[str, object], out: Path) -> PointTask:
    entry = IndexEntry(peak_mb=previous.get("peak_mb"))  # type: ignore[arg-type]
    task = PointTask(point, wall_time_s(point.experiment), entry)
    if run := point.run(out):
        task.update_from(run)
    if previous.get("status") == "failed" and entry.status != "done":
        entry.status, entry.error = "failed", str(previous.get("error", ""))
    return task
