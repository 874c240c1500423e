"""Files in a .tar.gz that may come from anywhere, read one after the other; nothing is ever unpacked to disk."""

import gzip
import io
import tarfile
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from vefl_sim.learning.datasets.files.location import Damaged

_MOST_BYTES = 1 << 28  # of the whole archive; that of CIFAR-10 unpacks to 184 million bytes
_MOST_MEMBER_BYTES = 1 << 25  # a batch of CIFAR-10 has 31 million


class _Bounded(io.RawIOBase):
    """A stream that refuses to give more than it should have."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file, self._left = file, _MOST_BYTES

    def read(self, size: int = -1) -> bytes:
        """The next bytes; one more than allowed is asked for, to see whether there are any."""
        content = self._file.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            raise Damaged(f"unpacks to more than {_MOST_BYTES >> 20} MB")
        return content


def members(path: Path, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Bare names and contents of the wanted files; others are passed over, and no path of theirs is used.

    Whoever takes them all knows that the archive is whole: at its end gzip checks its sum.
    """
    seen: set[str] = set()
    with gzip.open(path) as file:
        stream = _Bounded(file)
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                name = PurePosixPath(member.name).name
                if not member.isreg() or name not in names:
                    continue
                if name in seen:
                    raise Damaged(f"has two files {name}")
                seen.add(name)
                yield name, _content(archive, member)
        stream.read()  # to the end, where gzip checks its sum


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """What is in a file. A sparse one may announce any size and fill it with zeros that no stream has to give."""
    if member.issparse() or member.size > _MOST_MEMBER_BYTES:
        raise Damaged(f"has a file {member.name} that is sparse or larger than {_MOST_MEMBER_BYTES >> 20} MB")
    file = archive.extractfile(member)
    return file.read() if file else b""
