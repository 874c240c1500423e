"""What a built-in data set declares (`data.kind`), how it is read, and which of its samples are used.

All samples are used, or a random subset; some may be held out for validation.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import DataTable, Experiment
from vefl_sim.experiment.plugins import Kind, declaration, load_part
from vefl_sim.learning.datasets.dataset import Dataset, Inputs, Targets
from vefl_sim.learning.datasets.files import Damaged
from vefl_sim.learning.holdings import SampleGroups
from vefl_sim.mobility.scene import Mobility

Samples = tuple[NDArray[np.uint8], NDArray[np.int32]]
"""Images and their labels."""


def require_labels(labels: NDArray[np.integer], images: int, classes: int) -> None:
    """Damaged if there are no images, or not one label for each, or labels of no class."""
    if not 0 < len(labels) == images:
        raise Damaged(f"has {len(labels)} labels for {images} images")
    if labels.max() >= classes:
        raise Damaged(f"has a label {labels.max()}, but there are only {classes} classes")


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
    groups = SampleGroups.of(dataset)
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


@dataclass(frozen=True)
class DataKind(Kind):
    """A built-in data set: `make(data, rng)` reads or draws it; the other values are for estimates of wall time."""

    label: str | None = None  # its name in figures; if not given, that in the TOML
    train_samples: int = 12_000
    test_samples: int = 10_000
    any_number: bool = False  # the program draws any number of samples; the two above are defaults
    own_files: bool = False  # `data.dir` names files of the user, not public ones, which are the same everywhere
    side_px: int = 28  # of images that are not resized to `data.image_px`
    channels: int = 3
    from_traffic: bool = False  # the CVs of the run record it
    make_unseen: Callable[[DataTable, np.random.Generator], Dataset] | None = None  # same targets, inputs of zeros

    def __call__(self, experiment: Experiment, streams: Streams) -> Dataset:
        """The data set of an experiment; nobody sees its inputs if nothing is learnt."""
        unseen = experiment.learning.kind == "none" and self.make_unseen
        dataset: Dataset = (unseen or self.make)(experiment.data, streams.generator("data"))
        return dataset


@dataclass(frozen=True, kw_only=True)
class RecordedKind(DataKind):
    """A data set that the CVs of the run record: `make(experiment, rng, mobility)` drives through the traffic."""

    from_traffic: bool = True
    example: Callable[[DataTable], Dataset]  # one sample of each set, to check the model before there is traffic
    rule: Callable[[DataTable, Inputs], Targets]  # predictions without learning, which a model should surpass
    rule_name: str

    def __call__(self, experiment: Experiment, streams: Streams, *traffic: Callable[[], Mobility]) -> Dataset:
        """The data set of an experiment, recorded in its traffic."""
        dataset: Dataset = self.make(experiment, streams.generator("data"), traffic[0]())
        return dataset


Rule = tuple[str, float]
"""Name of a rule without learning, which a model should surpass, and its mean squared error on the test set."""


def rule_mse(data: DataTable, dataset: Dataset) -> Rule | None:
    """Name of the rule that a kind of data declares, and its mean squared error on the test set; None without one."""
    if not declaration("data.kind", data.kind, "from_traffic", False):
        return None
    kind: RecordedKind = load_part("data.kind", data.kind)
    differences: Any = kind.rule(data, dataset.test_inputs).astype(np.float64) - dataset.test_targets
    return kind.rule_name, float((differences**2).mean())
