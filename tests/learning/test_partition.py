import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vefl_sim.errors import ExperimentError
from vefl_sim.learning.partition import dirichlet

CASES = {
    "samples": st.integers(1, 400),
    "classes": st.integers(1, 12),
    "owners": st.integers(1, 30),
    "alpha": st.sampled_from([0.01, 0.1, 0.5, 1.0, 100.0]),
    "seed": st.integers(0, 2**32 - 1),
}


def labels_of(samples: int, classes: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(classes, size=samples).astype(np.int32)


@given(**CASES)
@settings(deadline=None)
def test_every_sample_has_one_owner_and_every_owner_the_minimum(
    samples: int, classes: int, owners: int, alpha: float, seed: int
) -> None:
    minimum = samples // owners
    labels = labels_of(samples, classes, seed)
    shards = dirichlet(labels, owners, alpha=alpha, min_samples=minimum, rng=np.random.default_rng(seed))
    assert len(shards) == owners
    assert np.array_equal(np.sort(np.concatenate(shards)), np.arange(samples))
    assert min(map(len, shards)) >= minimum


@given(**CASES)
@settings(deadline=None, max_examples=30)
def test_same_generator_same_partition(samples: int, classes: int, owners: int, alpha: float, seed: int) -> None:
    labels = labels_of(samples, classes, seed)
    first, second = (
        dirichlet(labels, owners, alpha=alpha, min_samples=0, rng=np.random.default_rng(seed)) for _ in range(2)
    )
    assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))


def test_topping_up_changes_only_what_is_needed() -> None:
    labels = labels_of(1000, 10, 0)
    free, topped = (
        dirichlet(labels, 20, alpha=0.1, min_samples=least, rng=np.random.default_rng(3)) for least in (0, 15)
    )
    missing = sum(max(0, 15 - len(shard)) for shard in free)
    moved = sum(len(set(after) - set(before)) for before, after in zip(free, topped, strict=True))
    assert moved == missing > 0


def test_small_alpha_gives_few_classes_and_large_alpha_all() -> None:
    labels = labels_of(20_000, 10, 0)

    def largest_share(alpha: float) -> float:
        shards = dirichlet(labels, 20, alpha=alpha, min_samples=10, rng=np.random.default_rng(0))
        return float(np.mean([np.bincount(labels[shard]).max() / len(shard) for shard in shards]))

    assert largest_share(0.1) > 0.4
    assert largest_share(100) < 0.2


def test_an_impossible_minimum_is_refused_with_the_way_out() -> None:
    with pytest.raises(ExperimentError) as refused:
        dirichlet(labels_of(99, 3, 0), 10, alpha=1.0, min_samples=10, rng=np.random.default_rng(0))
    assert refused.value.problems == (
        "10 CVs with data.min_samples = 10 each need 100 samples, but data.train_samples = 99: "
        "lower the first or raise the second.",
    )


def test_nobody_holds_nothing() -> None:
    assert dirichlet(labels_of(9, 3, 0), 0, alpha=1.0, min_samples=1, rng=np.random.default_rng(0)) == []
