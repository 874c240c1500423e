"""`cifar10`: the official binary archive, read without unpacking it to disk.

Five files of training records and one of test records; a record is a label and 3 × 32 × 32 bytes, channel by channel.
"""

import gzip
import io
import tarfile
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from vefl_sim.learning.datasets.choice import Choice
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.place import Damaged, Place

ARCHIVE = "cifar-10-binary.tar.gz"
CLASSES = 10
TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = "test_batch.bin"
_SIDE, _CHANNELS = 32, 3
_RECORD_BYTES = 1 + _CHANNELS * _SIDE * _SIDE
_MOST_BYTES = 1 << 28  # the archive unpacks to 184 million bytes
_MOST_BATCH_BYTES = 1 << 25  # a batch has 31 million


def cifar10(place: Place, choice: Choice) -> Dataset:
    """The data set in the archive that is there."""
    with place.reading(ARCHIVE) as path:
        batches = _batches(path)
        if missing := {*TRAIN, TEST} - batches.keys():
            raise Damaged(f"has no {min(missing)}")
        train_images, train_labels = _images(b"".join(batches[name] for name in TRAIN))
        test_images, test_labels = _images(batches[TEST])
    train, test = choice.train(len(train_labels)), choice.test(len(test_labels))
    return Dataset(
        place.kind, train_images[train], train_labels[train], test_images[test], test_labels[test], classes=CLASSES
    )


class _Bounded(io.RawIOBase):
    """A stream that refuses to give more than it should have."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file, self._left = file, _MOST_BYTES

    def read(self, size: int = -1) -> bytes:
        """The next bytes; one more than allowed is asked for, to see whether there are any."""
        content = self._file.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            raise Damaged(f"unpacks to more than {_MOST_BYTES >> 20} MB")
        return content


def _batches(path: Path) -> dict[str, bytes]:
    """Contents of the six files, by their bare names; other members are passed over, and no path of theirs is used."""
    batches: dict[str, bytes] = {}
    with gzip.open(path) as file:
        stream = _Bounded(file)
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                name = PurePosixPath(member.name).name
                if not member.isreg() or name not in (*TRAIN, TEST):
                    continue
                if name in batches:
                    raise Damaged(f"has two files {name}")
                batches[name] = _content(archive, member)
        stream.read()  # to the end, where gzip checks its sum
    return batches


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """What is in a batch. A sparse one may announce any size and fill it with zeros that no stream has to give."""
    if member.issparse() or member.size > _MOST_BATCH_BYTES:
        raise Damaged(f"has a file {member.name} that is sparse or larger than {_MOST_BATCH_BYTES >> 20} MB")
    file = archive.extractfile(member)
    return file.read() if file else b""


def _images(records: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    if not records or len(records) % _RECORD_BYTES:
        raise Damaged(f"has batches of {len(records)} bytes, which are not whole records of {_RECORD_BYTES}")
    table = np.frombuffer(records, np.uint8).reshape(-1, _RECORD_BYTES)
    labels = table[:, 0].astype(np.int32)
    if labels.max() >= CLASSES:
        raise Damaged(f"has a label {labels.max()}, and there are only {CLASSES} classes")
    return table[:, 1:].reshape(-1, _CHANNELS, _SIDE, _SIDE).transpose(0, 2, 3, 1), labels
