"""Assignment of the training samples to the CVs (`data.partition`)."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.learning_tables import DataTable
from vefl_sim.experiment.plugins import Kind, declaration, load_part
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.holdings.groups import Holdings, SampleGroups


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
    groups = SampleGroups.of_dataset(replace(dataset, train_groups=None) if rule.by_vehicle else dataset)
    holders = np.arange(shares) if shares else np.sort(cvs)
    _require_enough(len(dataset.train_targets), len(holders), data)
    holdings: Holdings = rule(groups, holders, data, rng)
    groups.top_up(holdings, data.min_samples, rng)
    takers = cvs if shares else holders
    return dict(sorted(zip(takers.tolist(), groups.samples(holdings), strict=not shares)))


def _require_what_it_needs(rule: "PartitionKind", dataset: Dataset, data: DataTable) -> None:
    if rule.by_class and dataset.classes is None:
        own = ' or "own"' if dataset.train_vehicles is not None else ""
        raise ExperimentError(
            f'data.partition = "{data.partition}" splits by class, and the targets of data.kind = "{data.kind}" are '
            f'numbers: set data.partition = "iid"{own}.'
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
        mend = "use fewer CVs, a lower minimum or more samples"
        if declaration("data.kind", data.kind, "from_traffic", False):
            mend = "let the run be longer, so that CVs record more, or lower the minimum"
        raise ExperimentError(
            f"{owners} CVs with data.min_samples = {data.min_samples} each need {needed} samples, but the training set "
            f"has {samples}{held_out} (data.train_samples): {mend}."
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
