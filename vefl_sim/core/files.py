"""Files that appear whole or not at all, also after a power cut; and the folder for caches."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from vefl_sim.core.errors import CannotWrite

PARTIAL = ".partial"


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A name to write to; the file gets its own when the block ends, and never if it breaks."""
    partial = path.with_name(path.name + PARTIAL)
    with writing(path):
        try:
            yield partial
            publish(partial, path)
        except OSError:
            with suppress(OSError):
                partial.unlink()  # on a full disk, every byte counts
            raise


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in one sentence why a file or a folder cannot be written."""
    try:
        yield
    except OSError as error:
        message = os.strerror(error.errno) if error.errno else error
        raise CannotWrite(
            f"{error.filename or path} cannot be written ({message}): make room or let it be written, then resume the "
            "run; what was written before stays."
        ) from error


def publish(partial: Path, path: Path) -> None:
    """Give a complete file its name. It is on the disk before the name is."""
    _sync(partial)
    partial.replace(path)
    _sync(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write a small file."""
    with whole(path) as partial:
        partial.write_text(text, encoding="utf-8")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cache_directory(environment: Mapping[str, str]) -> Path:
    """VEFL_SIM_CACHE, else vefl_sim in XDG_CACHE_HOME, else in ~/.cache."""
    if chosen := environment.get("VEFL_SIM_CACHE"):
        return Path(chosen)
    home = environment.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "vefl_sim"


def writable(directory: Path) -> bool:
    """Make a directory, if that is possible, and say whether it can be used."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK)
