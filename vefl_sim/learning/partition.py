"""Who holds which samples."""

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.learning_tables import DataTable
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.groups import Hands, Lots


def partition(dataset: Dataset, owners: int, data: DataTable, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Sample numbers of each owner, ascending, by the rule named in `data.partition`.

    Each sample belongs to exactly one owner, groups stay whole, and every owner has at least `data.min_samples`:
    whoever has fewer is topped up (`Lots.top_up`).
    """
    if owners == 0:
        return []
    lots = Lots.of(dataset.train_labels, dataset.train_groups)
    _require_enough(len(dataset.train_labels), owners, data)
    hands = _dealt(lots, owners, data, rng)
    lots.top_up(hands, data.min_samples, rng)
    return lots.samples(hands)


def dirichlet(lots: Lots, owners: int, alpha: float, rng: np.random.Generator) -> Hands:
    """For each class the shares over owners are drawn from Dir(α, …, α), and its lots, shuffled, are dealt out by them.

    A small α gives each owner few classes, and sizes with a heavy tail. Each class has an order of owners of its own:
    with fewer lots than owners, cuts at the same places would pass over the same owners in every class.
    """
    hands: Hands = [[] for _ in range(owners)]
    for label in np.unique(lots.labels):
        members = rng.permutation(np.flatnonzero(lots.labels == label))
        shares = rng.dirichlet(np.full(owners, alpha))
        places = np.rint(np.cumsum(shares)[:-1] * lots.sizes[members].sum()).astype(np.int64)
        for owner, piece in zip(rng.permutation(owners), lots.cut(members, places), strict=True):
            hands[owner].extend(piece.tolist())
    return hands


def iid(lots: Lots, owners: int, rng: np.random.Generator) -> Hands:
    """All lots, shuffled, in pieces of the same size, up to one lot."""
    shuffled = rng.permutation(len(lots.sizes))
    return [piece.tolist() for piece in lots.cut(shuffled, _even(int(lots.sizes.sum()), owners))]


def shards(lots: Lots, owners: int, per_owner: int, rng: np.random.Generator) -> Hands:
    """All lots, sorted by class, in owners · per_owner pieces of the same size; each owner gets some at random.

    So an owner has about `per_owner` classes, and all have the same number of samples.
    """
    count = owners * per_owner
    if count > len(lots.sizes):
        raise ExperimentError(
            f"{owners} CVs with data.shards_per_cv = {per_owner} need {count} shards, but there are only "
            f"{len(lots.sizes)} samples or groups of them: lower it, or use more data."
        )
    shuffled = rng.permutation(len(lots.sizes))
    by_class = shuffled[np.argsort(lots.labels[shuffled], kind="stable")]
    pieces = lots.cut(by_class, _even(int(lots.sizes.sum()), count))
    return [
        [lot for piece in mine for lot in pieces[piece].tolist()] for mine in rng.permutation(count).reshape(owners, -1)
    ]


def _dealt(lots: Lots, owners: int, data: DataTable, rng: np.random.Generator) -> Hands:
    if data.partition == "iid":
        return iid(lots, owners, rng)
    if data.partition == "shards":
        return shards(lots, owners, data.shards_per_cv, rng)
    return dirichlet(lots, owners, data.dirichlet_alpha, rng)


def _even(samples: int, pieces: int) -> NDArray[np.int64]:
    """Where to cut for pieces that differ by at most one sample."""
    return np.arange(1, pieces) * samples // pieces


def _require_enough(samples: int, owners: int, data: DataTable) -> None:
    needed = owners * data.min_samples
    if needed > samples:
        held_out = f" without data.validation_samples = {data.validation_samples}" if data.validation_samples else ""
        raise ExperimentError(
            f"{owners} CVs with data.min_samples = {data.min_samples} each need {needed} samples, but the training set "
            f"has {samples}{held_out} (data.train_samples): it takes fewer CVs or a lower minimum, or more samples."
        )
