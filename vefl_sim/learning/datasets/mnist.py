"""`mnist` and `fashion-mnist`: four IDX files, 60000 and 10000 grey images of 28 × 28, ten classes."""

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.files.location import Damaged, DataLocation
from vefl_sim.learning.datasets.subset import Subsets

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


MNIST_CLASSES = 10


def mnist(place: DataLocation, choice: Subsets) -> Dataset:
    """The data set whose files are there."""
    train_images, train_labels = _split(place, "train")
    test_images, test_labels = _split(place, "t10k")
    if train_images.shape[1:] != test_images.shape[1:]:
        raise ExperimentError(f"{place.folder}: training and test images differ in size: get the files again.")
    train, test = choice.train(len(train_labels)), choice.test(len(test_labels))
    return Dataset(
        place.kind,
        train_images[train],
        train_labels[train],
        test_images[test],
        test_labels[test],
        classes=MNIST_CLASSES,
    )


def _split(place: DataLocation, name: str) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    with place.reading(f"{name}-images-idx3-ubyte.gz") as path:
        images = read_idx(path, axes=3)
        if not images.size:
            raise Damaged("has no images")
    with place.reading(f"{name}-labels-idx1-ubyte.gz") as path:
        labels = read_idx(path, axes=1)
        if len(labels) != len(images):
            raise Damaged(f"has {len(labels)} labels for {len(images)} images")
        if labels.max() >= MNIST_CLASSES:
            raise Damaged(f"has a label {labels.max()}, and there are only {MNIST_CLASSES} classes")
    return images[..., np.newaxis], labels.astype(np.int32)
