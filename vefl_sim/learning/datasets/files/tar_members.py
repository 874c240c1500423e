"""Files in a .tar.gz from an untrusted source, read one after the other; nothing is ever unpacked to disk."""

import gzip
import io
import tarfile
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from vefl_sim.learning.datasets.files.location import Damaged

_MAX_BYTES = 1 << 28  # of the whole archive; that of CIFAR-10 unpacks to 184 million bytes
_MAX_MEMBER_BYTES = 1 << 25  # a batch of CIFAR-10 has 31 million


class _Bounded(io.RawIOBase):
    """A stream that refuses to unpack to more than _MAX_BYTES."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file, self._left = file, _MAX_BYTES

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes; one byte more than allowed is requested, to detect a stream that is too long."""
        content = self._file.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            raise Damaged(f"unpacks to more than {_MAX_BYTES >> 20} MB")
        return content


def members(path: Path, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield file name and content of the wanted files; other files are skipped, and paths are never used.

    After the last one the archive is known to be complete: at its end gzip compares its checksum.
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
                    raise Damaged(f"has two files named {name}")
                seen.add(name)
                yield name, _content(archive, member)
        stream.read()  # to the end, where gzip compares its checksum


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """Content of a file; a sparse file is refused, because it may announce any size without having the bytes."""
    if member.issparse() or member.size > _MAX_MEMBER_BYTES:
        raise Damaged(f"has a file {member.name} that is sparse or larger than {_MAX_MEMBER_BYTES >> 20} MB")
    file = archive.extractfile(member)
    return file.read() if file else b""
