"""Progress display of a sweep: a line for each point that ends and, on a terminal, the running points."""

import math
import os
import time
from collections.abc import Iterator

from rich.live import Live
from rich.text import Text

from vefl_sim.cli.progress import PipedConsole, clock
from vefl_sim.learning.metric import metric_of
from vefl_sim.sweep.runner import PointTask, SweepWatcher, Tasks

_MOST_SHOWN = 12  # running points listed, one line each
_OVERVIEW_EVERY_S = 60.0  # without a terminal: time between two overview lines
_SMOOTHING_S = 60.0  # after this time a new estimate of the end counts 63 %


class SweepProgress(SweepWatcher):
    """Prints each point that ends, and the remaining time of the sweep."""

    def __init__(self, console: PipedConsole, live: Live | None) -> None:
        self._console, self._live, self._last_s = console, live, time.monotonic()
        self._end_s, self._estimated_s = 0.0, 0.0  # expected end of the sweep, and when it was last estimated
        self.warnings: list[str] = []

    def changed(self, tasks: Tasks, task: PointTask) -> None:
        """Print one line for a point that ended or will be tried again; a started point only updates the overview."""
        entry = task.entry
        if entry.status == "running":
            self.ticked(tasks)
            return
        count = f"[{len(tasks.having('done', 'failed')):>{len(str(len(tasks)))}}/{len(tasks)}]"
        outcome = _waiting(task) if entry.status == "waiting" else f"{entry.status:7} {task.point.title}{_result(task)}"
        self._print(f"{count} {outcome} | {self._left(tasks)} left")

    def warned(self, task: PointTask, sentence: str) -> None:
        """Print a warning about a point, and keep it for the end."""
        self.warnings.append(f"warning {task.point.title}: {sentence}")
        self._print(self.warnings[-1])

    def ticked(self, tasks: Tasks) -> None:
        """Update the overview of the sweep and the list of running points."""
        if self._live:
            lines = [self._overview(tasks), *_running(tasks)]
            self._live.update(Text("\n".join(lines), overflow="ellipsis", no_wrap=True))
        elif time.monotonic() - self._last_s >= _OVERVIEW_EVERY_S:
            self._print(self._overview(tasks))

    def stopping(self) -> None:
        """Confirm the stop request; called from a signal handler, where only a plain write is safe."""
        if not self._console.quiet:
            os.write(2, b"\nstopping after the current rounds; interrupt again to stop immediately\n")

    def _left(self, tasks: Tasks) -> str:
        """Remaining time of the sweep; its expected end follows new estimates slowly, so that it does not jump."""
        now_s, left_s = time.monotonic(), tasks.left_s()
        trust = 1.0 if not self._estimated_s else 1 - math.exp((self._estimated_s - now_s) / _SMOOTHING_S)
        self._end_s += trust * (now_s + left_s - self._end_s)
        self._estimated_s = now_s
        return clock(max(0.0, self._end_s - now_s) if left_s else 0.0)

    def _overview(self, tasks: Tasks) -> str:
        counts = [f"{len(some)} {status}" for status in _ORDER if (some := tasks.having(status))]
        return f"{len(tasks)} points: {', '.join(counts)} | {self._left(tasks)} left"

    def _print(self, line: str) -> None:
        self._last_s = time.monotonic()
        self._console.show(line)


_ORDER = ("done", "running", "waiting", "stopped", "failed")


def _running(tasks: Tasks) -> Iterator[str]:
    running = tasks.having("running")
    for task in running[:_MOST_SHOWN]:
        yield f"  {task.share:4.0%} {task.point.title} | {clock(tasks.factor * task.left_s)} left"
    if len(running) > _MOST_SHOWN:
        yield f"  … and {len(running) - _MOST_SHOWN} more"


def _waiting(task: PointTask) -> str:
    what = "retried" if task.deaths else "waiting"
    return f"{what:7} {task.point.title}: {task.entry.error}"


def _result(task: PointTask) -> str:
    entry = task.entry
    if entry.status == "failed":
        return f": {entry.error}"
    metric = metric_of(task.point.experiment.learning.loss, has_accuracy=entry.accuracy is not None)
    value = metric.value(entry.accuracy, entry.loss)
    result = "" if value is None else f", {metric.name} {metric.text(value)}"
    wall = "" if entry.wall_s is None else f", {clock(entry.wall_s)}"
    return f"{result}{wall}"
