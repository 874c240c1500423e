"""Files in a .tar.gz from an untrusted source, read one after the other; nothing is ever unpacked to disk."""

import gzip
import tarfile
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from vefl_sim.core.files import Bounded, open_file
from vefl_sim.learning.datasets.files.location import Damaged

_MAX_BYTES = 1 << 28  # of the whole archive; that of CIFAR-10 unpacks to 184 million bytes
_MAX_MEMBER_BYTES = 1 << 25  # a batch of CIFAR-10 has 31 million


def members(path: Path, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield file name and content of the wanted files; other files are skipped, and paths are never used.

    After the last one the archive is known to be complete: at its end gzip compares its checksum.
    """
    seen: set[str] = set()
    with open_file(path) as packed, gzip.GzipFile(fileobj=packed) as file:
        stream = Bounded(file, _MAX_BYTES, str(path))
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
