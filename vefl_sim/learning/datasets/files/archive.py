"""Files by name, from a folder or a zip; nothing is ever unpacked to disk."""

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import Protocol, Self

from vefl_sim.learning.datasets.files.location import Damaged

_MOST_BYTES = 1 << 25  # of one file; a photograph of 20 megapixels has about 10 MB
_MOST_BYTES_IN_ALL = 1 << 33
_ENCRYPTED = 1


class Archive(AbstractContextManager["Archive"], Protocol):
    """Files that can be read by name; names have slashes."""

    def names(self) -> list[str]:
        """All files, sorted, but for hidden ones."""
        ...

    def folders(self) -> list[str]:
        """All folders, sorted, but for hidden ones; they may be empty."""
        ...

    def read(self, name: str) -> bytes:
        """What is in a file."""
        ...


class Folder:
    """The files under a folder of the user's."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def names(self) -> list[str]:
        """All files, sorted, but for hidden ones."""
        return sorted(self._name(path) for path in self._under(self._path) if path.is_file())

    def folders(self) -> list[str]:
        """All folders, sorted, but for hidden ones; they may be empty."""
        return sorted(self._name(path) for path in self._under(self._path) if path.is_dir())

    def read(self, name: str) -> bytes:
        """What is in a file."""
        with (self._path / name).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise Damaged(f"has a file {name} of more than {_MOST_BYTES >> 20} MB")
        return content

    def _under(self, folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
        """Files and folders. Links are followed, for images are often linked from elsewhere, but not in circles."""
        real = folder.resolve()
        if real in above:
            raise Damaged(f"has a link {self._name(folder)} to a folder that holds it")
        for path in folder.iterdir():
            if _hidden(path.name):
                continue
            if not path.exists():
                raise Damaged(f"has a link {self._name(path)} to something that is not there")
            yield path
            if path.is_dir():
                yield from self._under(path, above | {real})

    def _name(self, path: Path) -> str:
        return path.relative_to(self._path).as_posix()


class Zip:
    """The files in a zip that may come from anywhere."""

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path)
        try:
            self._members = _members(self._zip.infolist())
        except Damaged:
            self._zip.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def names(self) -> list[str]:
        """All files, sorted, but for hidden ones."""
        return sorted(name for name in self._members if not _hidden(name))

    def folders(self) -> list[str]:
        """All folders, sorted, but for hidden ones; they may be empty."""
        listed = (PurePosixPath(member.filename) for member in self._zip.infolist())
        paths = {folder.as_posix() for path in listed for folder in (path, *path.parents)}
        return sorted(path for path in paths if path not in self._members and not _hidden(path))

    def read(self, name: str) -> bytes:
        """What is in a file, which is no more than the zip announces, and that is bounded."""
        if name not in self._members:
            raise Damaged(f"has no {name}")
        return self._zip.read(self._members[name])


def _members(listed: Sequence[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for member in listed:
        _check(member)
        if member.filename in members:
            raise Damaged(f"has two files {member.filename}")
        if not member.is_dir():
            members[member.filename] = member
    if sum(member.file_size for member in members.values()) > _MOST_BYTES_IN_ALL:
        raise Damaged(f"unpacks to more than {_MOST_BYTES_IN_ALL >> 30} GB")
    return members


def _check(member: zipfile.ZipInfo) -> None:
    """Refuse what no data set has. Paths are never used, but who writes such ones means no good."""
    name = member.filename.replace("\\", "/")
    if name.startswith("/") or ".." in name.split("/") or ":" in name:
        raise Damaged(f"has a file outside of itself, {member.filename}")
    if member.flag_bits & _ENCRYPTED:
        raise Damaged(f"has an encrypted file {member.filename}")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # the others unpack without a bound
        raise Damaged(f"has a file {member.filename} that is neither stored nor deflated")
    if member.file_size > _MOST_BYTES:
        raise Damaged(f"has a file {member.filename} that unpacks to more than {_MOST_BYTES >> 20} MB")


def _hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))
