"""What a built-in data set declares (`data.kind`), and how it is read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.learning_tables import DataTable
from vefl_sim.experiment.plugins import Kind, declaration, load_part
from vefl_sim.learning.datasets.dataset import Dataset, Inputs, Targets
from vefl_sim.learning.datasets.files import DataLocation
from vefl_sim.learning.datasets.subset import Subsets
from vefl_sim.mobility.scene import Mobility


@dataclass(frozen=True)
class DataKind(Kind):
    """A built-in data set: `make(data, rng)` reads or draws it; the other values are for estimates of wall time."""

    label: str | None = None  # its name in figures; if not given, that in the TOML
    train_samples: int = 12_000
    test_samples: int = 10_000
    any_number: bool = False  # the program draws any number of samples; the two above are defaults
    own_files: bool = (
        False  # `data.dir` names files of the user, not the public ones, which are the same in every folder
    )
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


def from_files(reader: Callable[..., Dataset], *keys: str) -> Callable[[DataTable, np.random.Generator], Dataset]:
    """A function that calls `reader` with the location of the files, the subsets to use, and these keys of [data]."""

    def read(data: DataTable, rng: np.random.Generator) -> Dataset:
        return reader(DataLocation.of(data), Subsets(data, rng), *(getattr(data, key) for key in keys))

    return read
