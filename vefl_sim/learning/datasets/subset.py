"""Which samples of a data set are used: all or some of them, and which are held out for validation."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.learning_tables import DataTable
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.groups import Lots


class Subsets:
    """Draws the subsets. Training and test set have streams of their own, and a larger subset holds the smaller."""

    def __init__(self, data: DataTable, rng: np.random.Generator) -> None:
        self._data = data
        self._train_rng, self._test_rng = rng.spawn(2)

    def train(self, available: int) -> NDArray[np.int64]:
        """Numbers of the training samples to use, ascending."""
        return self._drawn("train_samples", self._data.train_samples, available, self._train_rng)

    def test(self, available: int) -> NDArray[np.int64]:
        """Numbers of the test samples to use, ascending."""
        return self._drawn("test_samples", self._data.test_samples, available, self._test_rng)

    def _drawn(self, key: str, wanted: int | None, available: int, rng: np.random.Generator) -> NDArray[np.int64]:
        if wanted is None:
            return np.arange(available)
        if wanted > available:
            raise ExperimentError(
                f'data.{key} = {wanted}, but data.kind = "{self._data.kind}" has {available} there: lower it, or leave '
                "it out for all."
            )
        return np.sort(rng.permutation(available)[:wanted])


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
