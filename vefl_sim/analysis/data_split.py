"""Who holds how many samples of which class."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Data, Experiment
from vefl_sim.simulation.scenario import share_out


@dataclass(frozen=True)
class Shares:
    """The training set, counted."""

    dataset: str
    rule: str
    counts: NDArray[np.int64]  # [CVs, classes]
    groups: int  # kept whole; 0 if there are none

    @property
    def title(self) -> str:
        """In a few words."""
        cvs, classes = self.counts.shape
        return f"{self.dataset}: {self.counts.sum()} samples of {classes} classes over {cvs} CVs, {self.rule}"

    def lines(self) -> list[str]:
        """In figures."""
        sizes = self.counts.sum(axis=1)
        lines = [
            self.title,
            f"samples of a CV: at least {sizes.min()}, median {np.median(sizes):.0f}, at most {sizes.max()}",
            f"classes of a CV: at least {self.classes.min()}, median {np.median(self.classes):.0f}, at most "
            f"{self.classes.max()}; the largest {np.median(self.large_classes):.0f} (median) make up 90% of its "
            "samples",
        ]
        return [*lines, f"{self.groups} groups, each with one CV"] if self.groups else lines

    @property
    def classes(self) -> NDArray[np.int64]:
        """How many classes each CV has, [CVs]."""
        return np.count_nonzero(self.counts, axis=1)  # type: ignore[no-any-return]

    @property
    def large_classes(self) -> NDArray[np.int64]:
        """How many of its classes, from the largest down, make up 90 % of the samples of each CV, [CVs]."""
        reached = np.cumsum(-np.sort(-self.counts, axis=1), axis=1)
        return 1 + np.count_nonzero(10 * reached < 9 * reached[:, -1:], axis=1)  # type: ignore[no-any-return]


def shares(experiment: Experiment) -> Shares:
    """Drive the traffic to see which CVs there are, read the data, and deal them out as the run would."""
    dataset, held = share_out(experiment, Streams(experiment.run.seed))
    if not held:
        raise ExperimentError("No CV comes into coverage, so nobody holds anything: make the run longer.")
    counts = [np.bincount(dataset.train_labels[mine], minlength=dataset.classes) for mine in held.values()]
    groups = 0 if dataset.train_groups is None else len(np.unique(dataset.train_groups))
    return Shares(dataset.name, _rule(experiment.data), np.array(counts), groups)


def _rule(data: Data) -> str:
    if data.partition == "iid":
        return "IID"
    return (
        f"{data.shards_per_cv} shards each" if data.partition == "shards" else f"Dirichlet α = {data.dirichlet_alpha:g}"
    )
