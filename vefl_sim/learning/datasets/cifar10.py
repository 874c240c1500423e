"""`cifar10`: the official binary archive, read without unpacking it to disk.

Five files of training records and one of test records; a record is a label and 3 × 32 × 32 bytes, channel by channel.
"""

import numpy as np

from vefl_sim.experiment.experiment import DataTable
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.files import Damaged, DataLocation, tar_members
from vefl_sim.learning.datasets.kinds import DataKind, Samples, Subsets, require_labels

ARCHIVE = "cifar-10-binary.tar.gz"
OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = "test_batch.bin"
_SIDE, _CHANNELS = 32, 3
_RECORD_BYTES = 1 + _CHANNELS * _SIDE * _SIDE


def cifar10(data: DataTable, rng: np.random.Generator) -> Dataset:
    """Read the data set from its archive."""
    location, subsets = DataLocation.of(data), Subsets(data, rng)
    with location.reading(ARCHIVE) as path:
        batches = tar_members(path, (*TRAIN, TEST))
        if missing := {*TRAIN, TEST} - batches.keys():
            raise Damaged(f"has no {min(missing)}")
        train, test = _images(b"".join(batches[name] for name in TRAIN)), _images(batches[TEST])
    return subsets.of(location.kind, train, test, OBJECTS)


def _images(records: bytes) -> Samples:
    if len(records) % _RECORD_BYTES:
        raise Damaged(f"has batches of {len(records)} bytes, which are not whole records of {_RECORD_BYTES}")
    table = np.frombuffer(records, np.uint8).reshape(-1, _RECORD_BYTES)
    labels = table[:, 0].astype(np.int32)
    require_labels(labels, len(table), len(OBJECTS))
    return table[:, 1:].reshape(-1, _CHANNELS, _SIDE, _SIDE).transpose(0, 2, 3, 1), labels


CIFAR10 = DataKind(
    cifar10,
    unused_keys=("data.image_px", "data.horizon_s"),
    label="CIFAR-10",
    train_samples=50_000,
    side_px=_SIDE,
)
