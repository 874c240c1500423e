"""Files read by name from a folder or a zip; nothing is ever unpacked to disk."""

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import Protocol, Self

from vefl_sim.learning.datasets.files.location import Damaged

_MAX_BYTES = 1 << 25  # of one file; a photograph of 20 megapixels has about 10 MB
_MAX_TOTAL_BYTES = 1 << 33
_ENCRYPTED = 1


class Archive(AbstractContextManager["Archive"], Protocol):
    """Files that can be read by name; folders in a name are separated by slashes."""

    def names(self) -> list[str]:
        """Names of all files except hidden ones, sorted."""
        ...

    def folders(self) -> list[str]:
        """Names of all folders except hidden ones, sorted; folders may be empty."""
        ...

    def read(self, name: str) -> bytes:
        """Content of a file."""
        ...


class Folder:
    """The files in a user-defined folder and its subfolders."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def names(self) -> list[str]:
        """Names of all files except hidden ones, sorted."""
        return sorted(self._name(path) for path in self._under(self._path) if path.is_file())

    def folders(self) -> list[str]:
        """Names of all folders except hidden ones, sorted; folders may be empty."""
        return sorted(self._name(path) for path in self._under(self._path) if path.is_dir())

    def read(self, name: str) -> bytes:
        """Content of a file."""
        with (self._path / name).open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise Damaged(f"has a file {name} of more than {_MAX_BYTES >> 20} MB")
        return content

    def _under(self, folder: Path, ancestors: frozenset[Path] = frozenset()) -> Iterator[Path]:
        """All files and folders below; links are followed, because images are often linked, but cycles are refused."""
        real = folder.resolve()
        if real in ancestors:
            raise Damaged(f"has a link {self._name(folder)} to a folder that contains it")
        for path in folder.iterdir():
            if _hidden(path.name):
                continue
            if not path.exists():
                raise Damaged(f"has a link {self._name(path)} to something that does not exist")
            yield path
            if path.is_dir():
                yield from self._under(path, ancestors | {real})

    def _name(self, path: Path) -> str:
        return path.relative_to(self._path).as_posix()


class Zip:
    """The files in a zip from an untrusted source."""

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
        """Names of all files except hidden ones, sorted."""
        return sorted(name for name in self._members if not _hidden(name))

    def folders(self) -> list[str]:
        """Names of all folders except hidden ones, sorted; folders may be empty."""
        listed = (PurePosixPath(member.filename) for member in self._zip.infolist())
        paths = {folder.as_posix() for path in listed for folder in (path, *path.parents)}
        return sorted(path for path in paths if path not in self._members and not _hidden(path))

    def read(self, name: str) -> bytes:
        """Content of a file; at most the size that the zip announces is unpacked, which `_check` limits."""
        if name not in self._members:
            raise Damaged(f"has no {name}")
        return self._zip.read(self._members[name])


def _members(listed: Sequence[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for member in listed:
        _check(member)
        if member.filename in members:
            raise Damaged(f"has two files named {member.filename}")
        if not member.is_dir():
            members[member.filename] = member
    if sum(member.file_size for member in members.values()) > _MAX_TOTAL_BYTES:
        raise Damaged(f"unpacks to more than {_MAX_TOTAL_BYTES >> 30} GB")
    return members


def _check(member: zipfile.ZipInfo) -> None:
    """Refuse members that only occur in damaged or hostile files; their paths are never used in any case."""
    if not member.filename:
        raise Damaged("has a file without a name")
    name = member.filename.replace("\\", "/")
    if name.startswith("/") or ".." in name.split("/") or ":" in name:
        raise Damaged(f"has a file with a path outside the zip, {member.filename}")
    if member.flag_bits & _ENCRYPTED:
        raise Damaged(f"has an encrypted file {member.filename}")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # other methods unpack without a limit
        raise Damaged(f"has a file {member.filename} that is neither stored nor deflated")
    if member.file_size > _MAX_BYTES:
        raise Damaged(f"has a file {member.filename} that unpacks to more than {_MAX_BYTES >> 20} MB")


def _hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))
