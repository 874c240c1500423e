"""Which public data sets have been downloaded, and whether a folder holds a complete one."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.learning_tables import DataTable
from vefl_sim.learning.datasets.compact_gtsrb import compact_files, compact_state
from vefl_sim.learning.datasets.files.location import DataLocation
from vefl_sim.learning.datasets.files.sources import SOURCES, RemoteFile


@dataclass(frozen=True)
class Holding:
    """Files of one data set on this machine: where, how large, and whether complete."""

    kind: str
    folder: Path
    state: str
    size_bytes: int

    def line(self) -> str:
        """One line of the output of `data list`."""
        size = f"{self.size_bytes / 1e6:.1f} MB" if self.size_bytes else ""
        return f"{self.kind:<14} {size:>9}  {self.folder}  {self.state}"


def inventory(parent: Path) -> list[Holding]:
    """State of all public data sets, each in a folder of its name; the digest of every file is computed."""
    return [_holding(kind, files, parent / kind) for kind, files in SOURCES.items()]


def _holding(kind: str, files: tuple[RemoteFile, ...], folder: Path) -> Holding:
    present = [file for file in files if (folder / file.name).is_file()]
    if kind == "gtsrb" and not present and (compact := compact_files(folder)):
        return Holding(kind, folder, compact_state(folder), _bytes(compact))
    size = _bytes([folder / file.name for file in present])
    return Holding(kind, folder, _state(kind, files, present, folder), size)


def _state(kind: str, files: tuple[RemoteFile, ...], present: list[RemoteFile], folder: Path) -> str:
    if not present:
        return "not there"
    if missing := [file.name for file in files if file not in present]:
        return f"incomplete, without {', '.join(missing)}"
    if wrong := [file.name for file in present if not file.is_in(folder)]:
        return f"damaged, wrong digest of {', '.join(wrong)}"
    return "complete"


def _bytes(paths: list[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def require_whole(data: DataTable) -> None:
    """Raise BadInput if `data.dir` holds a public data set that is incomplete; the digest of every file is computed."""
    if data.dir and data.kind in SOURCES and not _is_whole(data.kind, DataLocation.of(data).folder):
        raise BadInput(
            f'data.dir = "{data.dir}" does not hold all of {data.kind}, so its results cannot be stored: get it '
            f'with "python -m vefl_sim data get {data.kind}" and leave data.dir empty.'
        )


@cache
def _is_whole(kind: str, folder: Path) -> bool:
    """Whether `data list` would report this folder as complete."""
    files = SOURCES[kind]
    if kind == "gtsrb" and compact_files(folder) and not any((folder / file.name).is_file() for file in files):
        return compact_state(folder).startswith("complete")
    return all(file.is_in(folder) for file in files)
