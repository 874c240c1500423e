"""Who holds which samples."""

import numpy as np
from numpy.typing import NDArray

from vefl_sim.errors import ExperimentError


def dirichlet(
    labels: NDArray[np.int32], owners: int, *, alpha: float, min_samples: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Sample numbers of each owner, ascending; each sample belongs to exactly one.

    For each class the shares over owners are drawn from Dir(α, …, α), and its samples, shuffled, are dealt
    out by these shares; a small α gives each owner few classes. Sizes are then heavy-tailed, so every owner
    with less than `min_samples` is topped up, one owner after the other, with random samples of whoever
    holds most at that moment (ties: the first); a donor never falls under the minimum itself.
    """
    if owners == 0:
        return []
    _require_enough(len(labels), owners, min_samples)
    shards: list[list[int]] = [[] for _ in range(owners)]
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        cuts = _cuts(rng.dirichlet(np.full(owners, alpha)), len(members))
        for shard, part in zip(shards, np.split(members, cuts), strict=True):
            shard.extend(part.tolist())
    _top_up(shards, min_samples, rng)
    return [np.sort(np.array(shard, np.int64)) for shard in shards]


def _require_enough(samples: int, owners: int, min_samples: int) -> None:
    if owners * min_samples > samples:
        raise ExperimentError(
            f"{owners} CVs with data.min_samples = {min_samples} each need {owners * min_samples} samples, "
            f"but data.train_samples = {samples}: lower the first or raise the second."
        )


def _cuts(shares: NDArray[np.float64], members: int) -> NDArray[np.int64]:
    """Where to cut `members` shuffled samples so that the pieces have these shares, rounded."""
    return np.rint(np.cumsum(shares)[:-1] * members).astype(np.int64)


def _top_up(shards: list[list[int]], min_samples: int, rng: np.random.Generator) -> None:
    for poor in shards:
        while len(poor) < min_samples:
            rich = max(shards, key=len)
            poor.append(rich.pop(int(rng.integers(len(rich)))))
