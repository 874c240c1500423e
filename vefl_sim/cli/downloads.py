"""Progress bars of downloads, one for each attempt at a file."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn


class Bar:
    """One bar, as pooch drives it."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    @property
    def total(self) -> float | None:
        """Bytes to come; unknown if the server does not say."""
        return self._progress.tasks[self._task].total

    @total.setter
    def total(self, size_bytes: float) -> None:
        self._progress.update(self._task, total=size_bytes or None, completed=0)

    def update(self, size_bytes: float) -> None:
        """So much more has come."""
        self._progress.advance(self._task, size_bytes)

    def reset(self) -> None:
        """Pooch starts over to fill the bar exactly."""
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        """The bar stays as it is."""


class Bars:
    """A watcher of downloads."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def bar(self, name: str) -> Bar:
        """A new bar under the others."""
        return Bar(self._progress, self._progress.add_task(name, total=None))


@contextmanager
def download_display(console: Console) -> Iterator[Bars]:
    """Bars for the time of a download; off a terminal only how they ended."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console) as progress:
        yield Bars(progress)
