"""NumPy arrays: short names for their types, and .npz files of them, which are read from anywhere without trust.

An .npz file is a zip file of one .npy per array; `numpy.load` opens it. Nothing in it is ever executed, and it unpacks
to no more than it has bytes.
"""

import os
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.files import atomic_file, open_file
from vefl_sim.core.memory import require_memory

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
NamedArrays = dict[str, NDArray[Any]]

_SUFFIX = ".npy"


def write_npz(path: Path, arrays: NamedArrays) -> None:
    """Write an .npz file that appears only when it is complete; the same arrays give the same bytes."""
    with atomic_file(path) as partial, partial.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # no name is that of another argument


def read_npz(path: Path) -> NamedArrays:
    """All arrays of an .npz file by name; OSError, ValueError or BadInput if it cannot be read."""
    with open_file(path) as file:
        require_memory(os.fstat(file.fileno()).st_size, f"The arrays in {path}", "name a smaller file")
        try:
            with open_npz(file) as archive:
                names = [name.removesuffix(_SUFFIX) for name in archive.namelist()]
                return {name: read_array(archive, name) for name in names}
        except OSError:
            raise
        except Exception as error:  # for damaged bytes, zipfile and NumPy raise many kinds of errors
            raise ValueError(str(error)) from None


def open_npz(file: BinaryIO) -> zipfile.ZipFile:
    """Open a zip file that unpacks to no more than it has bytes: its members are stored as they are, not compressed."""
    size = file.seek(0, os.SEEK_END)
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile:
        raise ValueError("it does not end as an .npz file does") from None
    members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("it is compressed")
    if sum(member.file_size for member in members) > size:
        raise ValueError("its members are larger than the file")
    return archive


def read_array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Read an .npy; ValueError if it is not one, or has objects, or other bytes than its header announces."""
    with archive.open(f"{name}{_SUFFIX}") as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        if file.read(1):
            raise ValueError("an array has another size than its header says")
    return array
