"""What a person sees of a sweep: a line for each point that ends, and on a terminal those that run."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from vefl_sim.cli.progress import clock
from vefl_sim.sweep.tasks import PointTask, Tasks

_MOST_SHOWN = 12  # running points, one line each
_SECONDS_BETWEEN = 60.0  # of two lines about the whole, where nothing moves


class SweepProgress:
    """Prints what ends, and when the whole will."""

    def __init__(self, console: Console, live: Live | None) -> None:
        self._console, self._live, self._last_s = console, live, time.monotonic()

    def changed(self, tasks: Tasks, task: PointTask) -> None:
        """One line, unless it has only begun."""
        entry = task.entry
        if entry.status == "running":
            self.ticked(tasks)
            return
        count = f"[{len(tasks.having('done', 'failed')):>{len(str(len(tasks)))}}/{len(tasks)}]"
        message = _waits(task) if entry.status == "waiting" else f"{entry.status:7} {task.point.title}{_figures(task)}"
        self._print(f"{count} {message} | {clock(tasks.left_s())} to go")

    def ticked(self, tasks: Tasks) -> None:
        """The whole, and those that run."""
        if self._live:
            self._live.update(Text("\n".join([_whole(tasks), *_running(tasks)]), overflow="ellipsis", no_wrap=True))
        elif time.monotonic() - self._last_s >= _SECONDS_BETWEEN:
            self._print(_whole(tasks))

    def stopping(self) -> None:
        """A signal handler may interrupt anything, so nothing but the plainest way to write will do."""
        if not self._console.quiet:
            os.write(2, b"\nstopping after the rounds that run; once more stops at once\n")

    def _print(self, line: str) -> None:
        self._last_s = time.monotonic()
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._console.file.flush()


@contextmanager
def watching(console: Console) -> Iterator[SweepProgress]:
    """A display for the time of a sweep."""
    if not console.is_terminal:
        yield SweepProgress(console, None)
        return
    with Live(console=console, refresh_per_second=4) as live:
        yield SweepProgress(console, live)


def _whole(tasks: Tasks) -> str:
    counts = [f"{len(found)} {status}" for status in _ORDER if (found := tasks.having(status))]
    return f"{len(tasks)} points: {', '.join(counts)} | {clock(tasks.left_s())} to go"


_ORDER = ("done", "running", "waiting", "stopped", "failed")


def _running(tasks: Tasks) -> Iterator[str]:
    running = tasks.having("running")
    for task in running[:_MOST_SHOWN]:
        yield f"  {task.share:4.0%} {task.point.title} | {clock(tasks.factor * task.left_s)} to go"
    if len(running) > _MOST_SHOWN:
        yield f"  … and {len(running) - _MOST_SHOWN} more"


def _waits(task: PointTask) -> str:
    how = "is tried again" if task.deaths else "waits"
    return f"{how:7} {task.point.title}: {task.entry.error}"


def _figures(task: PointTask) -> str:
    entry = task.entry
    if entry.status == "failed":
        return f": {entry.error}"
    accuracy = "" if entry.accuracy is None else f", accuracy {entry.accuracy:.4f}"
    wall = "" if entry.wall_s is None else f", {clock(entry.wall_s)}"
    return f"{accuracy}{wall}"
