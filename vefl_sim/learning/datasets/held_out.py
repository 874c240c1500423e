"""A validation set: for whoever chooses a learning rate, the test set does not exist."""

from dataclasses import replace

import numpy as np

from vefl_sim.core.errors import ExperimentError
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.groups import Lots


def held_out(dataset: Dataset, samples: int, rng: np.random.Generator) -> Dataset:
    """The same data with about `samples` of the training set, in whole groups, in place of the test set."""
    lots = Lots.of(dataset.train_labels, dataset.train_groups)
    drawn = rng.permutation(len(lots.sizes))
    first = int(np.searchsorted(np.cumsum(lots.sizes[drawn]), samples)) + 1
    out = np.isin(lots.of_sample, drawn[:first])
    if out.all():
        raise ExperimentError(
            f"data.validation_samples = {samples} leaves nothing to train of {len(out)} samples: lower it."
        )
    groups = dataset.train_groups
    return replace(
        dataset,
        train_images=dataset.train_images[~out],
        train_labels=dataset.train_labels[~out],
        train_groups=None if groups is None else groups[~out],
        test_images=dataset.train_images[out],
        test_labels=dataset.train_labels[out],
    )
