"""Groups of samples that are assigned to one CV as a whole, such as the tracks of GTSRB."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError
from vefl_sim.learning.datasets.dataset import Dataset

Holdings = list[list[int]]
"""Numbers of the groups that each owner holds."""


@dataclass(frozen=True)
class SampleGroups:
    """The training samples in groups; in a data set without groups, every sample is a group of its own."""

    labels: NDArray[np.int32]  # [groups]; the class of a group is that of its first sample; all 0 without classes
    sizes: NDArray[np.int64]  # [groups], samples in each
    group_of_sample: NDArray[np.int64]  # [samples], number of the group of each sample
    vehicles: NDArray[np.int64] | None = None  # [groups], vehicle that recorded each

    @classmethod
    def of(cls, labels: NDArray[np.int32], group_ids: NDArray[np.int64] | None = None) -> "SampleGroups":
        """Group the samples with these labels; samples with the same number in `group_ids` belong together."""
        if group_ids is None:
            return cls(labels, np.ones(len(labels), np.int64), np.arange(len(labels)))
        _, first, of_sample, sizes = np.unique(group_ids, return_index=True, return_inverse=True, return_counts=True)
        return cls(labels[first], sizes, of_sample)

    @classmethod
    def of_dataset(cls, dataset: Dataset) -> "SampleGroups":
        """Group the training samples of a data set."""
        targets, vehicles = dataset.train_targets, dataset.train_vehicles
        labels = np.zeros(len(targets), np.int32) if dataset.classes is None else targets
        groups = cls.of(labels, dataset.train_groups)
        if vehicles is None:
            return groups
        _, first = np.unique(groups.group_of_sample, return_index=True)
        return replace(groups, vehicles=vehicles[first])

    def cut(self, groups: NDArray[np.int64], cuts: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Split a sequence of groups, as near as whole groups allow, at these cumulative numbers of samples."""
        sizes = self.sizes[groups]
        return np.split(groups, np.searchsorted(np.cumsum(sizes) - sizes / 2, cuts))

    def top_up(self, holdings: Holdings, least: int, rng: np.random.Generator) -> None:
        """Give each owner with fewer than `least` samples random groups of the owner with most (ties: the first).

        A donor keeps at least `least` samples itself; an owner whose groups are all too large for that gives none.
        Single samples can always be topped up if there are enough of them, and so can groups that each have at least
        `least` samples; otherwise a minimum that could be met may be missed, and is then refused.
        """
        sizes = self.sizes.tolist()
        sample_counts = [sum(sizes[group] for group in held) for held in holdings]
        for receiver, held in enumerate(holdings):
            while sample_counts[receiver] < least:
                donor, index = self._donation(holdings, sample_counts, least, rng)
                group = holdings[donor].pop(index)
                held.append(group)
                sample_counts[donor] -= sizes[group]
                sample_counts[receiver] += sizes[group]

    def _donation(
        self, holdings: Holdings, sample_counts: Sequence[int], least: int, rng: np.random.Generator
    ) -> tuple[int, int]:
        """Choose a donor and the index of one of its groups."""
        largest = int(self.sizes.max())
        for donor in sorted(range(len(holdings)), key=sample_counts.__getitem__, reverse=True):
            spare = sample_counts[donor] - least
            if spare >= largest:  # the usual case: the donor can give any of its groups
                return donor, int(rng.integers(len(holdings[donor])))
            if fitting := [index for index, group in enumerate(holdings[donor]) if self.sizes[group] <= spare]:
                return donor, fitting[rng.integers(len(fitting))]
        raise ExperimentError(
            f"{len(self.sizes)} groups of up to {largest} samples, which are kept whole, could not be assigned so "
            f"that each of {len(holdings)} CVs has data.min_samples = {least}: lower it, or use more data."
        )

    def samples(self, holdings: Holdings) -> list[NDArray[np.int64]]:
        """Sample numbers of each owner, ascending."""
        owner_of_group = np.empty(len(self.sizes), np.int64)
        for owner, held in enumerate(holdings):
            owner_of_group[held] = owner
        owner_of_sample = owner_of_group[self.group_of_sample]
        ends = np.cumsum(np.bincount(owner_of_sample, minlength=len(holdings)))
        return np.split(np.argsort(owner_of_sample, kind="stable"), ends[:-1])
