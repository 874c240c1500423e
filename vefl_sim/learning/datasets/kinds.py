"""The data set that `data.kind` names."""

import numpy as np

from vefl_sim.experiment.learning_tables import DataTable
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.files.location import DataLocation
from vefl_sim.learning.datasets.subset import Subsets

# Each reader is imported when it is used: most runs need none of Pillow, tarfile, gzip.


def read_dataset(data: DataTable, rng: np.random.Generator) -> Dataset:
    """Read or draw a built-in data set; `data.kind` must not be a user-defined part."""
    if data.kind == "signs":
        return _signs(data, rng)
    location, subsets = DataLocation.of(data), Subsets(data, rng)
    if data.kind == "folder":
        from vefl_sim.learning.datasets.folder import folder

        return folder(location, subsets, data.image_px)
    if data.kind == "gtsrb":
        from vefl_sim.learning.datasets.gtsrb import gtsrb

        return gtsrb(location, subsets, data.image_px)
    if data.kind == "cifar10":
        from vefl_sim.learning.datasets.cifar10 import cifar10

        return cifar10(location, subsets)
    from vefl_sim.learning.datasets.mnist import mnist

    return mnist(location, subsets)


def _signs(data: DataTable, rng: np.random.Generator) -> Dataset:
    from vefl_sim.learning.datasets.signs.drawing import signs

    settled = data.settled()
    assert settled.train_samples is not None
    assert settled.test_samples is not None
    return signs(settled.train_samples, settled.test_samples, settled.image_px, rng)
