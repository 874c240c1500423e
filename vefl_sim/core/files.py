"""Files that are either complete or absent, even after a power failure; and the cache directory."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from vefl_sim.core.errors import CannotWrite

PARTIAL = ".partial"


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; it is renamed to `path` only if the block ends without an error."""
    partial = path.with_name(path.name + PARTIAL)
    with explain_write_errors(path):
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
        reason = os.strerror(error.errno) if error.errno else error
        raise CannotWrite(
            f"{error.filename or path} cannot be written ({reason}): free disk space or grant write permission, then "
            "resume the run; files written before are kept."
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
