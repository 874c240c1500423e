"""Which CV holds which training samples (`data.partition`), in whole groups, and CVs with wrong labels.

Groups of samples are assigned to one CV as a whole, such as the tracks of GTSRB. Adversaries are CVs whose labels are
flipped (`adversary.share`), so that their updates harm the model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import DataTable
from vefl_sim.experiment.plugins import Kind, load_part
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
    def of(cls, dataset: Dataset) -> "SampleGroups":
        """The groups of the training samples of a data set."""
        labels, ids, vehicles = dataset.train_targets, dataset.train_groups, dataset.train_vehicles
        if dataset.classes is None:
            labels = np.zeros(len(labels), np.int32)
        if ids is None:
            return cls(labels, np.ones(len(labels), np.int64), np.arange(len(labels)), vehicles)
        _, first, of_sample, sizes = np.unique(ids, return_index=True, return_inverse=True, return_counts=True)
        return cls(labels[first], sizes, of_sample, None if vehicles is None else vehicles[first])

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
        for donor in sorted(range(len(holdings)), key=sample_counts.__getitem__, reverse=True):
            fitting = np.flatnonzero(self.sizes[holdings[donor]] <= sample_counts[donor] - least)
            if len(fitting):
                return donor, int(fitting[rng.integers(len(fitting))])
        raise ExperimentError(
            f"{len(self.sizes)} groups of up to {self.sizes.max()} samples, which are kept whole, could not be "
            f"assigned so that each of {len(holdings)} CVs has data.min_samples = {least}: lower it, or use more data."
        )

    def samples(self, holdings: Holdings) -> list[NDArray[np.int64]]:
        """Sample numbers of each owner, ascending."""
        owner_of_group = np.empty(len(self.sizes), np.int64)
        for owner, held in enumerate(holdings):
            owner_of_group[held] = owner
        owner_of_sample = owner_of_group[self.group_of_sample]
        ends = np.cumsum(np.bincount(owner_of_sample, minlength=len(holdings)))
        return np.split(np.argsort(owner_of_sample, kind="stable"), ends[:-1])


def partition(
    dataset: Dataset, cvs: NDArray[np.int64], data: DataTable, rng: np.random.Generator
) -> dict[int, NDArray[np.int64]]:
    """Assign the training samples by the rule `data.partition`; return each CV's sample numbers, ascending, by CV.

    `cvs` are in the order of their first entry. Each sample belongs to exactly one holder, groups stay whole, and every
    holder has at least `data.min_samples`: those with fewer are topped up (`SampleGroups.top_up`). With "own" these get
    single samples: a CV that has recorded nothing would otherwise need all of another one's group. The holders are the
    CVs themselves, or `data.holders` of them, whose shares the CVs take one after the other.
    """
    if not len(cvs):
        return {}
    rule: PartitionKind = load_part("data.partition", data.partition)
    shares = 0 if rule.by_vehicle else data.holders  # of a fixed number of holders
    if 0 < shares < len(cvs):
        raise ExperimentError(
            f"{len(cvs)} CVs enter coverage, but data.holders = {data.holders} has no share for all of them: raise it "
            f"to {len(cvs)} or more, or set it to 0."
        )
    _require_what_it_needs(rule, dataset, data)
    groups = SampleGroups.of(replace(dataset, train_groups=None) if rule.by_vehicle else dataset)
    holders = np.arange(shares) if shares else np.sort(cvs)
    _require_enough(len(dataset.train_targets), len(holders), data)
    holdings: Holdings = rule(groups, holders, data, rng)
    groups.top_up(holdings, data.min_samples, rng)
    takers = cvs if shares else holders
    return dict(sorted(zip(takers.tolist(), groups.samples(holdings), strict=not shares)))


def _require_what_it_needs(rule: "PartitionKind", dataset: Dataset, data: DataTable) -> None:
    if rule.by_class and dataset.classes is None:
        raise ExperimentError(
            f'data.partition = "{data.partition}" splits by class, and the targets of data.kind = "{data.kind}" are '
            f'numbers: set data.partition = "iid", or "own" if CVs have recorded the samples.'
        )
    if rule.by_vehicle and dataset.train_vehicles is None:
        raise ExperimentError(
            f'data.partition = "{data.partition}" leaves samples with the CV that recorded them, which data.kind = '
            f'"{data.kind}" does not tell: use another partition, or give the Dataset its train_vehicles.'
        )


def dirichlet(groups: SampleGroups, owners: int, alpha: float, rng: np.random.Generator) -> Holdings:
    """For each class, draw the owners' shares from Dir(α, …, α) and assign its shuffled groups accordingly.

    A small α gives each owner few classes, and sizes with a heavy tail. The order of the owners is drawn per class: in
    classes with fewer groups than owners, cuts at the same places would always leave out the same owners.
    """
    holdings: Holdings = [[] for _ in range(owners)]
    for label in np.unique(groups.labels):
        members = rng.permutation(np.flatnonzero(groups.labels == label))
        shares = rng.dirichlet(np.full(owners, alpha))
        cuts = np.rint(np.cumsum(shares)[:-1] * groups.sizes[members].sum()).astype(np.int64)
        for owner, piece in zip(rng.permutation(owners), groups.cut(members, cuts), strict=True):
            holdings[owner].extend(piece.tolist())
    return holdings


def own(groups: SampleGroups, cvs: NDArray[np.int64]) -> Holdings:
    """Each CV holds what it has recorded; groups of vehicles that are no CVs in coverage go to the CVs in turn."""
    assert groups.vehicles is not None
    owner_of = {cv: owner for owner, cv in enumerate(cvs.tolist())}
    holdings: Holdings = [[] for _ in owner_of]
    for group, vehicle in enumerate(groups.vehicles.tolist()):
        holdings[owner_of.get(vehicle, vehicle % len(owner_of))].append(group)
    return holdings


def iid(groups: SampleGroups, owners: int, rng: np.random.Generator) -> Holdings:
    """Shuffle all groups and cut them into pieces of the same number of samples, up to one group."""
    shuffled = rng.permutation(len(groups.sizes))
    return [piece.tolist() for piece in groups.cut(shuffled, _even_cuts(int(groups.sizes.sum()), owners))]


def shards(groups: SampleGroups, owners: int, per_owner: int, rng: np.random.Generator) -> Holdings:
    """Sort all groups by class, cut them into owners · per_owner equal pieces, and give each owner some at random.

    So an owner has about `per_owner` classes, and all have the same number of samples.
    """
    count = owners * per_owner
    if count > len(groups.sizes):
        raise ExperimentError(
            f"{owners} CVs with data.shards_per_cv = {per_owner} need {count} shards, but there are only "
            f"{len(groups.sizes)} samples or groups of samples: lower it, or use more data."
        )
    shuffled = rng.permutation(len(groups.sizes))
    by_class = shuffled[np.argsort(groups.labels[shuffled], kind="stable")]
    pieces = groups.cut(by_class, _even_cuts(int(groups.sizes.sum()), count))
    return [
        [group for piece in own_pieces for group in pieces[piece].tolist()]
        for own_pieces in rng.permutation(count).reshape(owners, -1)
    ]


def _even_cuts(samples: int, pieces: int) -> NDArray[np.int64]:
    """Cumulative numbers of samples at which to cut for pieces that differ by at most one sample."""
    return np.arange(1, pieces) * samples // pieces


def _require_enough(samples: int, owners: int, data: DataTable) -> None:
    needed = owners * data.min_samples
    if needed > samples:
        held_out = f" without data.validation_samples = {data.validation_samples}" if data.validation_samples else ""
        raise ExperimentError(
            f"{owners} CVs with data.min_samples = {data.min_samples} each need {needed} samples, but the training set "
            f"has {samples}{held_out}: use fewer CVs, a lower minimum or more samples; CVs record more in a longer run."
        )


@dataclass(frozen=True, kw_only=True)
class PartitionKind(Kind):
    """A rule of the split (`data.partition`): `make(groups, cvs, data, rng)` assigns the groups."""

    title: Callable[[DataTable], str]  # the rule with its parameter, for titles
    by_class: bool = False  # it needs classes
    by_vehicle: bool = False  # it needs the vehicle that recorded each sample


DIRICHLET = PartitionKind(
    make=lambda groups, cvs, data, rng: dirichlet(groups, len(cvs), data.dirichlet_alpha, rng),
    unused_keys=("data.shards_per_cv",),
    title=lambda data: f"Dirichlet α = {data.dirichlet_alpha:g}",
    by_class=True,
)
IID = PartitionKind(
    make=lambda groups, cvs, data, rng: iid(groups, len(cvs), rng),
    unused_keys=("data.dirichlet_alpha", "data.shards_per_cv"),
    title=lambda data: "IID",
)
SHARDS = PartitionKind(
    make=lambda groups, cvs, data, rng: shards(groups, len(cvs), data.shards_per_cv, rng),
    unused_keys=("data.dirichlet_alpha",),
    title=lambda data: f"{data.shards_per_cv} shards per CV",
    by_class=True,
)
OWN = PartitionKind(
    make=lambda groups, cvs, data, rng: own(groups, cvs),
    unused_keys=("data.dirichlet_alpha", "data.shards_per_cv", "data.holders"),
    title=lambda data: "each CV its own",
    by_vehicle=True,
)


def adversaries(cvs: NDArray[np.int64], share: float, streams: Streams) -> NDArray[np.bool_]:
    """Which CVs are adversaries; this depends on the CV only, and a larger share contains the smaller."""
    return np.array([streams.generator("adversary", int(cv)).random() < share for cv in cvs], np.bool_)


def with_flipped_labels(
    dataset: Dataset, shards: Mapping[int, NDArray[np.int64]], share: float, streams: Streams
) -> Dataset:
    """The data set in which the training samples of all adversaries have the class classes − 1 − label."""
    if not share:
        return dataset
    if dataset.classes is None:
        raise ExperimentError(
            f"adversary.share = {share:g} flips labels, and {dataset.name} has no classes: remove the key."
        )
    cvs, labels = np.array([*shards], np.int64), dataset.train_targets.copy()
    for cv in cvs[adversaries(cvs, share, streams)].tolist():
        labels[shards[cv]] = dataset.classes - 1 - labels[shards[cv]]
    return replace(dataset, train_targets=labels)
