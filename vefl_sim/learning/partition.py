"""Assignment of the training samples to the CVs (`data.partition`)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.learning_tables import DataTable
from vefl_sim.experiment.plugins import Kind, make_part
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.groups import Holdings, SampleGroups


def partition(dataset: Dataset, owners: int, data: DataTable, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Assign the training samples by the rule `data.partition`; return each owner's sample numbers, ascending.

    Each sample belongs to exactly one owner, groups stay whole, and every owner has at least `data.min_samples`:
    owners with fewer are topped up (`SampleGroups.top_up`).
    """
    if owners == 0:
        return []
    groups = SampleGroups.of(dataset.train_labels, dataset.train_groups)
    _require_enough(len(dataset.train_labels), owners, data)
    holdings: Holdings = make_part("data.partition", data.partition, groups, owners, data, rng)
    groups.top_up(holdings, data.min_samples, rng)
    return groups.samples(holdings)


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
            f"has {samples}{held_out} (data.train_samples): use fewer CVs, a lower minimum or more samples."
        )


@dataclass(frozen=True, kw_only=True)
class PartitionKind(Kind):
    """A rule of the split (`data.partition`): `make(groups, owners, data, rng)` assigns the groups."""

    title: Callable[[DataTable], str]  # the rule with its parameter, for titles


DIRICHLET = PartitionKind(
    make=lambda groups, owners, data, rng: dirichlet(groups, owners, data.dirichlet_alpha, rng),
    unused_keys=("data.shards_per_cv",),
    title=lambda data: f"Dirichlet α = {data.dirichlet_alpha:g}",
)
IID = PartitionKind(
    make=lambda groups, owners, data, rng: iid(groups, owners, rng),
    unused_keys=("data.dirichlet_alpha", "data.shards_per_cv"),
    title=lambda data: "IID",
)
SHARDS = PartitionKind(
    make=lambda groups, owners, data, rng: shards(groups, owners, data.shards_per_cv, rng),
    unused_keys=("data.dirichlet_alpha",),
    title=lambda data: f"{data.shards_per_cv} shards per CV",
)
