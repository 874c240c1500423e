"""IDX, the format of MNIST: two zero bytes, a type, the number of axes, their lengths, and the values."""

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vefl_sim.learning.datasets.files.location import Damaged

_UNSIGNED_BYTE = 8
_MOST_BYTES = 1 << 30  # MNIST has 47 million


def read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    """The array of bytes in a gzipped IDX file. No more is unpacked than the header says."""
    with gzip.open(path) as file:
        shape = _shape(file.read(4 + 4 * axes), axes)
        size = int(np.prod(shape, dtype=object))
        if size > _MOST_BYTES:
            raise Damaged(f"announces {size} values")
        values = file.read(size)
        if len(values) < size:
            raise Damaged(f"ends after {len(values)} of {size} values")
        if file.read(1):  # the end is also where gzip checks its sum
            raise Damaged(f"goes on after the {size} values that it announces")
    return np.frombuffer(values, np.uint8).reshape(shape)


def _shape(header: bytes, axes: int) -> tuple[int, ...]:
    if header[:4] != bytes((0, 0, _UNSIGNED_BYTE, axes)) or len(header) < 4 + 4 * axes:
        raise Damaged(f"is not an IDX file of bytes with {axes} axes")
    return tuple(int(length) for length in np.frombuffer(header[4:], ">u4"))
