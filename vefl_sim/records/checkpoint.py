"""Checkpoints of a run: everything it needs to go on from the start of a round, bit for bit.

checkpoints/0000013.npz is written before round 13. It is a zip file, as numpy's always are, of state.json and one .npy
per array: `unzip` and `numpy.load` open it. Nothing in it is ever executed. The last two are kept; one that is damaged
shows by the checksums that zip keeps, and the one before it serves instead.
"""

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vefl_sim.core.errors import BadInput, NotResumable
from vefl_sim.core.files import whole
from vefl_sim.core.state import Arrays, State, pack, unpack
from vefl_sim.records.table_parts import PartFile

_FORMAT = 1
_KEPT = 2
_STATE = "state.json"


@dataclass(frozen=True)
class Checkpoint:
    """A run between two rounds."""

    round: int  # the one that starts next
    time_ns: int
    wall_s: float  # spent so far
    figures: dict[str, Any]  # of the summary, so far
    tables: dict[str, list[dict[str, str]]]  # part files that count
    state: State

    @property
    def files(self) -> list[str]:
        """Names of the part files."""
        return [part["file"] for parts in self.tables.values() for part in parts]


class Checkpoints:
    """Those of one run."""

    def __init__(self, run: Path) -> None:
        self.directory, self._parts = run / "checkpoints", run / "parts"

    def write(self, checkpoint: Checkpoint) -> None:
        """Add one, and remove those that nobody needs any more."""
        arrays: Arrays = {}
        content = {"format": _FORMAT, **vars(checkpoint), "state": pack(checkpoint.state, arrays)}
        with (
            whole(self.directory / _name(checkpoint)) as partial,
            zipfile.ZipFile(partial, "w") as archive,
        ):
            archive.writestr(_STATE, json.dumps(content))
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
        for old in self._newest_first()[_KEPT:]:
            with suppress(OSError):  # one too many does no harm
                old.unlink()

    def newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The last one from which the run can go on, and what is wrong with later ones; None before the first."""
        faults: list[str] = []
        for file in self._newest_first():
            try:
                checkpoint = _read(file)
            except NotResumable as error:
                faults.append(str(error))
                continue
            if fault := next(self._faults(checkpoint), None):
                faults.append(f"{file} needs a part file, but {fault}")
                continue
            return checkpoint, faults
        if faults:
            raise NotResumable([*(f"{fault}." for fault in faults), _HOPELESS.format(run=self.directory.parent)])
        return None, []

    def remove_after(self, last: Checkpoint | None) -> None:
        """Remove those that cannot be used; they are of rounds that will be repeated."""
        for file in self.directory.iterdir():
            if file.is_file() and (last is None or file.name > _name(last)):
                file.unlink()

    def last_readable(self) -> Checkpoint | None:
        """For somebody who only looks: the newest that can be read, without its state."""
        for file in self._newest_first():
            try:
                return _read(file, with_state=False)
            except BadInput:
                continue
        return None

    def _newest_first(self) -> list[Path]:
        return sorted(self.directory.glob("[0-9]*.npz"), reverse=True)

    def _faults(self, checkpoint: Checkpoint) -> Iterator[str]:
        """What is wrong with the part files that it needs."""
        for parts in checkpoint.tables.values():
            for part in parts:
                if fault := PartFile(**part).fault(self._parts):
                    yield fault


_HOPELESS = "{run} has no other checkpoint to continue from: put the file back, or run the experiment with --fresh."


def _name(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.round:07d}.npz"


def _read(file: Path, with_state: bool = True) -> Checkpoint:
    """A checkpoint, or a sentence. Its bytes may be anything, and zip and numpy raise all sorts of things for that."""
    try:
        with zipfile.ZipFile(file) as archive:
            content = json.loads(archive.read(_STATE))
            if content.pop("format") != _FORMAT:
                raise NotResumable(f"{file} was written by another version of vefl_sim")
            packed = content.pop("state")
            return Checkpoint(**content, state=unpack(packed, _arrays(archive)) if with_state else {})
    except NotResumable:
        raise
    except OSError as error:  # nothing is known to be wrong with the file
        raise BadInput(f"{file} cannot be read ({error.strerror}): let it be read.") from None
    except Exception as error:
        raise NotResumable(f"{file} is damaged ({_told(error)})") from None


def _arrays(archive: zipfile.ZipFile) -> Arrays:
    members = [name for name in archive.namelist() if name != _STATE]
    return {name.removesuffix(".npy"): _array(archive.read(name)) for name in members}


def _array(member: bytes) -> Any:
    return np.lib.format.read_array(io.BytesIO(member), allow_pickle=False)


def _told(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
