"""Where the files of a data set are, and the error messages for files that are missing or cannot be read."""

import csv
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import cache_directory
from vefl_sim.experiment.learning_tables import DataTable


class Damaged(Exception):
    """A file without the expected content; its text completes a sentence that begins with "it"."""


UNREADABLE = (
    OSError, EOFError, RuntimeError, ValueError, OverflowError, MemoryError, struct.error, zlib.error,
    zipfile.BadZipFile, tarfile.TarError, csv.Error,
)  # fmt: skip
"""Errors that the readers of the standard library raise on a truncated or corrupted file."""


def downloads() -> Path:
    """The folder where `data get` without --dir creates a folder for each data set."""
    return cache_directory(os.environ) / "data"


@contextmanager
def errors_as_sentence(path: Path, fix: str) -> Iterator[None]:
    """Turn errors in reading a file into an ExperimentError of one sentence that names the file and the fix."""
    try:
        yield
    except Damaged as error:
        raise ExperimentError(f"{path} cannot be used: it {error}; {fix}.") from None
    except UNREADABLE as error:
        raise ExperimentError(f"{path} cannot be read ({_reason(error)}); {fix}.") from None


@dataclass(frozen=True)
class DataLocation:
    """The folder of one data set."""

    kind: str
    folder: Path
    chosen: bool  # whether the user named the folder in data.dir

    @classmethod
    def of(cls, data: DataTable) -> "DataLocation":
        """The folder `data.dir` of an experiment, or the download folder of its data set."""
        folder = _possible_path(data.dir) if data.dir else downloads() / data.kind
        return cls(data.kind, folder, bool(data.dir))

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        """Path of a file; errors while it is read become one sentence with the fix."""
        path = self.folder / name
        with errors_as_sentence(path, self._fix()):
            if not path.is_file():
                raise self._missing(name)
            yield path

    def has(self, name: str) -> bool:
        """Whether the folder has a file of this name."""
        return os.path.isfile(self.folder / name)  # False also for a folder without read permission

    def _missing(self, name: str) -> ExperimentError:
        where = f"{self.folder} (data.dir)" if self.chosen else str(self.folder)
        other = "leave data.dir empty" if self.chosen else "name its folder in data.dir"
        conjunction = "and" if self.chosen else "or"
        return ExperimentError(
            f'data.kind = "{self.kind}": {name} is not in {where}: get it with '
            f'"python -m vefl_sim data get {self.kind}" {conjunction} {other}.'
        )

    def _fix(self) -> str:
        again = f'download it again with "python -m vefl_sim data get {self.kind}"'
        return f"replace it, or {again} and leave data.dir empty" if self.chosen else again


def _possible_path(text: str) -> Path:
    """The path in data.dir; it need not exist, but it must be one that could exist."""
    try:
        path = Path(text).expanduser()
        with suppress(FileNotFoundError, NotADirectoryError):
            path.stat()
    except (OSError, RuntimeError, ValueError) as error:  # too long, the home of an unknown user, a null character
        raise ExperimentError(f"data.dir = {text!r} cannot be used ({_reason(error)}): name another folder.") from None
    return path


def _reason(error: BaseException) -> str:
    message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return message.rstrip(".") or type(error).__name__
