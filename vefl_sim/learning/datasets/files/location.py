"""Where the files of a data set are, and what to tell a user if they are not, or cannot be read."""

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
    """A file that is not what its name says; the text goes on after "it"."""


UNREADABLE = (
    OSError, EOFError, RuntimeError, ValueError, OverflowError, MemoryError, struct.error, zlib.error,
    zipfile.BadZipFile, tarfile.TarError, csv.Error,
)  # fmt: skip
"""What the readers of the standard library raise on a file that is cut short or scrambled."""


def downloads() -> Path:
    """Where `data get` puts a folder for each data set, if it is not told another place."""
    return cache_directory(os.environ) / "data"


@contextmanager
def one_sentence(path: Path, way_out: str) -> Iterator[None]:
    """Whatever is wrong with a file becomes one sentence that names it and the way out."""
    try:
        yield
    except Damaged as error:
        raise ExperimentError(f"{path} cannot be used: it {error}; {way_out}.") from None
    except UNREADABLE as error:
        raise ExperimentError(f"{path} cannot be read ({_reason(error)}); {way_out}.") from None


@dataclass(frozen=True)
class DataLocation:
    """The folder of one data set."""

    kind: str
    folder: Path
    chosen: bool  # by the user, in data.dir

    @classmethod
    def of(cls, data: DataTable) -> "DataLocation":
        """The folder that an experiment means."""
        folder = _named(data.dir) if data.dir else downloads() / data.kind
        return cls(data.kind, folder, bool(data.dir))

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        """The path of a file; what goes wrong while it is read becomes one sentence with the way out."""
        path = self.folder / name
        with one_sentence(path, self._way_out()):
            if not path.is_file():
                raise self._missing(name)
            yield path

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return os.path.isfile(self.folder / name)  # where one may not look, there is none

    def _missing(self, name: str) -> ExperimentError:
        where = f"{self.folder} (data.dir)" if self.chosen else str(self.folder)
        other = "leave data.dir empty" if self.chosen else "say in data.dir where it is"
        conjunction = "and" if self.chosen else "or"
        return ExperimentError(
            f'data.kind = "{self.kind}": {name} is not in {where}: get it with '
            f'"python -m vefl_sim data get {self.kind}" {conjunction} {other}.'
        )

    def _way_out(self) -> str:
        again = f'"python -m vefl_sim data get {self.kind}"'
        return f"replace it, or {again} gets it anew, for an empty data.dir" if self.chosen else f"{again} gets it anew"


def _named(text: str) -> Path:
    """The path that data.dir means; it need not exist, but it must be one that could."""
    try:
        path = Path(text).expanduser()
        with suppress(FileNotFoundError, NotADirectoryError):
            path.stat()
    except (OSError, RuntimeError, ValueError) as error:  # too long, a home of nobody, a null character
        raise ExperimentError(f"data.dir = {text!r} cannot be used ({_reason(error)}): name another folder.") from None
    return path


def _reason(error: BaseException) -> str:
    message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return message.rstrip(".") or type(error).__name__
