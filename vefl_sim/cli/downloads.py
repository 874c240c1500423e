"""Progress bars of downloads: one bar for each attempt to download a file."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn


class Bar:
    """One progress bar, with the interface that pooch expects."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    @property
    def total(self) -> float | None:
        """Size of the file in bytes; None if the server does not report it."""
        return self._progress.tasks[self._task].total

    @total.setter
    def total(self, size_bytes: float) -> None:
        self._progress.update(self._task, total=size_bytes or None, completed=0)

    def update(self, size_bytes: float) -> None:
        """Advance the bar by the number of bytes received."""
        self._progress.advance(self._task, size_bytes)

    def reset(self) -> None:
        """Set the bar back to zero; pooch does this at the end before it fills the bar completely."""
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        """Leave the finished bar on the screen."""


class Bars:
    """Creates a progress bar for each download; passed to `download` as its watcher."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def bar(self, name: str) -> Bar:
        """Add a bar below the existing ones."""
        return Bar(self._progress, self._progress.add_task(name, total=None))


@contextmanager
def download_display(console: Console) -> Iterator[Bars]:
    """Show progress bars during a download; without a terminal, print only their final state."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console) as progress:
        yield Bars(progress)
