"""Which samples of a data set are used, all or a random subset, and which are held out for validation."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.learning_tables import DataTable
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.holdings.groups import SampleGroups

Samples = tuple[NDArray[np.uint8], NDArray[np.int32]]
"""Images and their labels."""


class Subsets:
    """Random subsets; training and test set have separate random streams, and a larger subset contains the smaller."""

    def __init__(self, data: DataTable, rng: np.random.Generator) -> None:
        self._data = data
        self._train_rng, self._test_rng = rng.spawn(2)

    def train(self, available: int) -> NDArray[np.int64]:
        """Numbers of the training samples to use, ascending."""
        return self._draw("train_samples", self._data.train_samples, available, self._train_rng)

    def test(self, available: int) -> NDArray[np.int64]:
        """Numbers of the test samples to use, ascending."""
        return self._draw("test_samples", self._data.test_samples, available, self._test_rng)

    def of(self, name: str, train: Samples, test: Samples, class_names: tuple[str, ...]) -> Dataset:
        """The data set with these images and labels, of which only the samples to use are kept."""
        kept, kept_for_test = self.train(len(train[1])), self.test(len(test[1]))
        return Dataset(
            name, train[0][kept], train[1][kept], test[0][kept_for_test], test[1][kept_for_test],
            classes=len(class_names), class_names=class_names,
        )  # fmt: skip

    def _draw(self, key: str, wanted: int | None, available: int, rng: np.random.Generator) -> NDArray[np.int64]:
        if wanted is None:
            return np.arange(available)
        if wanted > available:
            raise ExperimentError(
                f'data.{key} = {wanted}, but data.kind = "{self._data.kind}" has only {available}: lower it, or leave '
                "it out to use all."
            )
        return np.sort(rng.permutation(available)[:wanted])


def held_out(dataset: Dataset, samples: int, rng: np.random.Generator) -> Dataset:
    """Hold out about `samples` of the training samples, in whole groups, and put them in place of the test set."""
    groups = SampleGroups.of_dataset(dataset)
    drawn = rng.permutation(len(groups.sizes))
    count = int(np.searchsorted(np.cumsum(groups.sizes[drawn]), samples)) + 1
    out = np.isin(groups.group_of_sample, drawn[:count])
    if out.all():
        raise ExperimentError(
            f"data.validation_samples = {samples} leaves none of the {len(out)} samples for training: lower it."
        )
    group_ids, vehicles = dataset.train_groups, dataset.train_vehicles
    return replace(
        dataset,
        train_inputs=dataset.train_inputs[~out],
        train_targets=dataset.train_targets[~out],
        train_groups=None if group_ids is None else group_ids[~out],
        train_vehicles=None if vehicles is None else vehicles[~out],
        test_inputs=dataset.train_inputs[out],
        test_targets=dataset.train_targets[out],
    )
