"""`mnist` and `fashion-mnist`: four IDX files, 60000 and 10000 grey images of 28 × 28, ten classes."""

import gzip
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import open_file
from vefl_sim.experiment.experiment import DataTable
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.files import Damaged, DataLocation
from vefl_sim.learning.datasets.kinds import DataKind, Samples, Subsets, require_labels
from vefl_sim.learning.datasets.public import warn_of_other_files

_UNSIGNED_BYTE = 8
_MAX_BYTES = 1 << 29  # MNIST has 47 million, the digits of EMNIST 220 million


def read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    """Read the array of bytes in a gzipped IDX file; no more is unpacked than the header announces."""
    with open_file(path) as packed, gzip.GzipFile(fileobj=packed) as file:
        header = file.read(4 + 4 * axes)
        if header[:4] != bytes((0, 0, _UNSIGNED_BYTE, axes)) or len(header) < 4 + 4 * axes:
            raise Damaged(f"is not an IDX file of bytes with {axes} axes")
        shape = np.frombuffer(header[4:], ">u4").tolist()
        if (size := math.prod(shape)) > _MAX_BYTES:
            raise Damaged(f"announces {size} values")
        values = file.read(size + 1)  # to the end of the file, where gzip also compares its checksum
        if len(values) != size:
            raise Damaged(f"does not have the {size} values that it announces")
    return np.frombuffer(values, np.uint8).reshape(shape)


DIGITS = tuple("0123456789")
GARMENTS = (
    "T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip


def mnist(data: DataTable, rng: np.random.Generator) -> Dataset:
    """Read MNIST or Fashion-MNIST from its four files."""
    location, subsets = DataLocation.of(data), Subsets(data, rng)
    train, test = _split(location, "train"), _split(location, "t10k")
    if train[0].shape[1:] != test[0].shape[1:]:
        raise ExperimentError(f"{location.folder}: training and test images differ in size: download the files again.")
    warn_of_other_files(location.kind, location.folder)
    return subsets.of(location.kind, train, test, GARMENTS if location.kind == "fashion-mnist" else DIGITS)


def _split(location: DataLocation, name: str) -> Samples:
    with location.reading(f"{name}-images-idx3-ubyte.gz") as path:
        images = read_idx(path, axes=3)
    with location.reading(f"{name}-labels-idx1-ubyte.gz") as path:
        labels = read_idx(path, axes=1)
        require_labels(labels, len(images), len(DIGITS))
    return images[..., np.newaxis], labels.astype(np.int32)


MNIST = DataKind(
    mnist, unused_keys=("data.image_px", "data.horizon_s"), label="MNIST", train_samples=60_000, channels=1
)
FASHION_MNIST = replace(MNIST, label="Fashion-MNIST")
