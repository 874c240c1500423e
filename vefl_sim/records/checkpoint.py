"""Checkpoints of a run: everything needed to resume it at the start of a round with bit-identical results.

checkpoints/0000013.npz is written before round 13. It is a zip file, like every .npz file, of state.json, one .npy per
array, and digests.json with the SHA-256 of each of them: `unzip` and `numpy.load` open it. Nothing in it is ever
executed. The last two checkpoints are kept: if the newest is damaged or edited, which its digests show, the one before
it is used.
"""

import errno
import hashlib
import json
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from vefl_sim.core.arrays import open_npz, read_array
from vefl_sim.core.errors import BadInput, NotResumable, first_line
from vefl_sim.core.files import atomic_file, open_file, parse_json
from vefl_sim.core.state import Arrays, State, pack, unpack
from vefl_sim.experiment.complaints import shortened
from vefl_sim.records.table_parts import PartFile
from vefl_sim.records.totals import are_figures

_FORMAT = 4
_KEPT = 2
_STATE, _DIGESTS = "state.json", "digests.json"
_MAX_STATE_BYTES = 1 << 23  # a run of 3000 rounds with a checkpoint after each has 2 million


@dataclass(frozen=True)
class Checkpoint:
    """The saved state of a run between two rounds."""

    round: int  # the next round
    time_ns: int
    wall_s: float  # wall-clock time spent so far
    figures: dict[str, Any]  # figures of the summary up to here
    tables: dict[str, list[PartFile]]  # table -> part files with its rows up to here
    state: State

    @property
    def files(self) -> list[str]:
        """Names of all part files that this checkpoint refers to."""
        return [part.file for parts in self.tables.values() for part in parts]


class Checkpoints:
    """The checkpoint files of one run directory."""

    def __init__(self, run: Path, kept: int | None = _KEPT) -> None:
        """`kept`: how many checkpoints remain when another one is written; None: all."""
        self.directory, self._parts, self._kept = run / "checkpoints", run / "parts", kept

    def write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, then delete all but the newest."""
        arrays: Arrays = {}
        content = {"format": _FORMAT, **vars(checkpoint), "state": pack(checkpoint.state, arrays)}
        with atomic_file(self.file_of(checkpoint)) as partial:
            with partial.open("wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]  # no name is that of another argument
            with zipfile.ZipFile(partial, "a") as archive:
                archive.writestr(_STATE, json.dumps(content, default=vars))  # of part files
                digests = {member: _digest(archive, member) for member in archive.namelist()}
                archive.writestr(_DIGESTS, json.dumps(digests))
        for old in self._newest_first()[self._kept :] if self._kept else ():
            with suppress(OSError):  # an extra checkpoint does no harm
                old.unlink()

    def file_of(self, checkpoint: Checkpoint) -> Path:
        """The file of a checkpoint."""
        return self.directory / _name(checkpoint)

    def newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest usable checkpoint (None before the first), and one text per newer checkpoint that is damaged."""
        faults: list[str] = []
        for file in self._newest_first():
            try:
                return self._usable(file), faults
            except NotResumable as error:
                faults.append(str(error))
        if faults:
            none, fix = "has no other checkpoint to resume from", "restore the file, or run the experiment with --fresh"
            raise NotResumable([*(f"{fault}." for fault in faults), f"{self.directory.parent} {none}: {fix}."])
        return None, []

    def usable(self) -> Iterator[Checkpoint]:
        """All usable checkpoints, the newest first."""
        for file in self._newest_first():
            with suppress(NotResumable):
                yield self._usable(file)

    def _usable(self, file: Path) -> Checkpoint:
        checkpoint = _read(file)
        for part in chain.from_iterable(checkpoint.tables.values()):
            if fault := part.fault(self._parts):
                raise NotResumable(f"{file} needs a part file, but {fault}")
        return checkpoint

    def remove_after(self, last: Checkpoint | None) -> None:
        """Delete checkpoints newer than `last`, which are unusable; their rounds will be simulated again."""
        for file in self.directory.iterdir():
            if file.is_file() and (last is None or file.name > _name(last)):
                file.unlink()

    def last_readable(self) -> Checkpoint | None:
        """The newest readable checkpoint without its state, for inspecting a run; None if there is none."""
        for file in self._newest_first():
            with suppress(BadInput):
                return _read(file, with_state=False)
        return None

    def _newest_first(self) -> list[Path]:
        return sorted(self.directory.glob("[0-9]*.npz"), reverse=True)


def _name(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.round:07d}.npz"


def _read(file: Path, with_state: bool = True) -> Checkpoint:
    """Read a checkpoint; for damaged bytes, zipfile and NumPy raise many kinds of errors, all of which are caught."""
    try:
        with open_file(file) as opened, open_npz(opened) as archive:
            content = _json(archive, _STATE)
            if content.pop("format") != _FORMAT:
                raise NotResumable(f"{file} was written by another version of vefl_sim")
            digests = _json(archive, _DIGESTS)
            for member in archive.namelist() if with_state else [_STATE]:
                if member != _DIGESTS and _digest(archive, member) != digests.get(member):
                    raise ValueError(f"its {shortened(member)} has changed since it was written")
            names = [member.removesuffix(".npy") for member in archive.namelist() if member.endswith(".npy")]
            arrays = {name: read_array(archive, name) for name in names} if with_state else {}
            content["state"] = unpack(content["state"], arrays) if with_state else {}
            try:
                checkpoint = TypeAdapter(Checkpoint).validate_python(content)
            except ValidationError as error:
                first = error.errors()[0]
                raise ValueError(f"its {_STATE}: {'.'.join(map(str, first['loc']))}: {first['msg'].lower()}") from None
            if not are_figures(checkpoint.figures):
                raise ValueError(f"its {_STATE} has figures of other types")
            if _name(checkpoint) != file.name:
                raise ValueError(f"it is the one of round {checkpoint.round}")
            return checkpoint
    except NotResumable:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # the file itself may be intact
            reason = f"cannot be read ({error.strerror}): grant read permission or check the disk."
            raise BadInput(f"{file} {reason}") from None
        raise NotResumable(f"{file} is damaged ({first_line(error)})") from None  # EINVAL: it names a place before it


def _json(archive: zipfile.ZipFile, member: str) -> Any:
    """Read a JSON file of an archive, if it is not too large."""
    if archive.getinfo(member).file_size > _MAX_STATE_BYTES:
        raise ValueError(f"its {member} has more than {_MAX_STATE_BYTES >> 20} MB")
    return parse_json(archive.read(member))


def _digest(archive: zipfile.ZipFile, member: str) -> str:
    with archive.open(member) as content:
        return hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]
