"""Files that are there whole or not at all, also after a power cut."""

import os
from collections.abc import Iterator
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
        told = os.strerror(error.errno) if error.errno else error
        raise CannotWrite(
            f"{error.filename or path} cannot be written ({told}): make room or let it be written, then resume the "
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
