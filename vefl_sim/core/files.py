"""Files that are written completely or not at all, and read from anywhere without trust; and the cache directory.

All reading functions raise OSError, with a reason, for what is not a file, and for more bytes than the caller accepts.
"""

import errno
import gzip
import io
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from vefl_sim.core.errors import CannotWrite

PARTIAL = ".partial"
MAX_TEXT_BYTES = 1 << 20  # of a JSON or text file; parsed, it takes up to 75 times as much; runs have some KB
_GZIP = b"\x1f\x8b"


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; it is renamed to `path` only if the block ends without an error."""
    partial = path.with_name(path.name + PARTIAL)
    with explain_write_errors(path):
        partial.unlink(missing_ok=True)  # nothing is written through a link or into a pipe
        try:
            yield partial
            publish(partial, path)
        except OSError:
            with suppress(OSError):
                partial.unlink()  # frees space if the disk is full
            raise


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turn an OSError in the block into CannotWrite, whose message names the file and the fix."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not path.parent.exists():
            raise CannotWrite(
                f"{path} cannot be written, because {path.parent} no longer exists: somebody has deleted or moved it; "
                "move it back and resume the run, or run the experiment again."
            ) from error
        reason = os.strerror(error.errno) if error.errno else error
        raise CannotWrite(
            f"{error.filename or path} cannot be written ({reason}): free disk space or grant write permission; files "
            "written before are kept."
        ) from error


def publish(partial: Path, path: Path) -> None:
    """Rename a complete file to its final name, after its content has reached the disk."""
    _sync(partial)
    partial.replace(path)
    _sync(path.parent)


def first_free(paths: Iterable[Path]) -> Path:
    """The first of these paths that does not exist."""
    return next(path for path in paths if not path.exists())


def write_text(path: Path, text: str) -> None:
    """Write a text file (UTF-8) that appears only when it is complete."""
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_file(path: Path) -> io.BufferedReader:
    """Open a file for reading; refuses folders, and pipes and devices, from which reading might never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        code, reason = (errno.EISDIR, "it is a folder") if stat.S_ISDIR(kind) else (errno.EINVAL, "it is not a file")
        raise OSError(code, reason, str(path))
    return os.fdopen(descriptor, "rb")


def read_file(path: Path, most_bytes: int = MAX_TEXT_BYTES) -> bytes:
    """The content of a file of at most `most_bytes`."""
    with open_file(path) as file:
        return Bounded(file, most_bytes, str(path)).read()


def read_text(path: Path) -> str:
    """The content of a text file (UTF-8); raises ValueError if it is not text."""
    return read_file(path).decode()


def read_json(path: Path) -> Any:
    """The content of a JSON file; raises ValueError if it is not JSON."""
    return parse_json(read_file(path))


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; raises ValueError for bad JSON, also if it is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


@contextmanager
def open_unpacked(path: Path, most_bytes: int | None = None) -> Iterator[io.BufferedIOBase]:
    """Open a file that may be gzipped, whatever its name, and unpack it while it is read, up to `most_bytes`."""
    with open_file(path) as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        content = gzip.GzipFile(fileobj=file) if packed else file
        yield content if most_bytes is None else Bounded(content, most_bytes, str(path))


class Bounded(io.BufferedIOBase):
    """A stream of at most `most_bytes`; reading more raises OSError."""

    def __init__(self, file: io.BufferedIOBase, most_bytes: int, name: str) -> None:
        self._file, self._left, self._most, self._name = file, most_bytes, most_bytes, name

    def read(self, size: int | None = -1, /) -> bytes:
        """Read the next bytes; one byte more than allowed is requested, to detect a stream that is too long."""
        content = self._file.read(min(size, self._left + 1) if size is not None and size >= 0 else self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            unpacks = "unpacks to" if isinstance(self._file, gzip.GzipFile) else "has"
            raise OSError(errno.EFBIG, f"it {unpacks} more than {self._most / 1e6:.3g} MB", self._name)
        return content


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Directory for caches: $VEFL_SIM_CACHE, else vefl_sim in $XDG_CACHE_HOME, else ~/.cache/vefl_sim."""
    if chosen := environment.get("VEFL_SIM_CACHE"):
        return Path(chosen)
    home = environment.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "vefl_sim"


def ensure_writable(directory: Path) -> bool:
    """Create a directory if it is missing; return whether files can be written in it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK)
