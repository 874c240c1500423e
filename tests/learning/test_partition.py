import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import DataTable
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.holdings import SampleGroups, dirichlet, partition

CASES = {
    "samples": st.integers(2, 400),
    "classes": st.integers(1, 12),
    "owners": st.integers(1, 30),
    "alpha": st.sampled_from([0.01, 0.1, 0.5, 1.0, 100.0]),
    "seed": st.integers(0, 2**32 - 1),
}


def labels_of(samples: int, classes: int, seed: int) -> NDArray[np.int32]:
    return np.random.default_rng(seed).integers(classes, size=samples).astype(np.int32)


def dataset(labels: NDArray[np.int32], groups: NDArray[np.int64] | None = None) -> Dataset:
    images = np.zeros((len(labels), 1, 1, 1), np.uint8)
    return Dataset("tiny", images, labels, images, labels, classes=12, train_groups=groups)


def split(data: Dataset, owners: int, seed: int = 0, **keys: object) -> list[NDArray[np.int64]]:
    table = DataTable.model_validate(keys)
    return [*partition(data, np.arange(owners), table, np.random.default_rng(seed)).values()]


def counts(labels: NDArray[np.int32], held: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.array([np.bincount(labels[mine], minlength=12) for mine in held])


@given(
    **CASES,
    rule=st.sampled_from(["dirichlet", "iid", "shards"]),
    sizes=st.lists(st.integers(1, 40), min_size=2, max_size=40) | st.integers(2, 400).map(lambda n: [1] * n),
)
def test_every_sample_has_one_owner_groups_stay_whole_and_the_minimum_holds_or_is_refused(
    samples: int, classes: int, owners: int, alpha: float, seed: int, rule: str, sizes: list[int]
) -> None:
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(rng.permutation(1000)[: len(sizes)], sizes))
    labels = rng.integers(classes, size=1000)[groups].astype(np.int32)
    owners = min(owners, len(sizes) // 2)
    least = 1 + samples % max(1, 2 * min(sizes))  # sometimes more than a group has
    try:
        held = split(dataset(labels, groups), owners, seed, partition=rule, dirichlet_alpha=alpha, min_samples=least)
    except ExperimentError:
        assert least > min(sizes)  # otherwise it is always possible
        return
    assert np.array_equal(np.sort(np.concatenate(held)), np.arange(len(groups)))
    assert len(held) == owners
    assert min(map(len, held)) >= least
    assert all((np.diff(mine) > 0).all() for mine in held)
    assert sum(len(np.unique(groups[mine])) for mine in held) == len(sizes)


def plain_dirichlet(
    labels: NDArray[np.int32], owners: int, alpha: float, least: int, rng: np.random.Generator
) -> list[list[int]]:
    """Reference version without groups, sample by sample; draws the same random numbers."""
    held: list[list[int]] = [[] for _ in range(owners)]
    for label in sorted({*labels.tolist()}):
        members = rng.permutation(np.flatnonzero(labels == label))
        edges = [0, *np.rint(np.cumsum(rng.dirichlet([alpha] * owners))[:-1] * len(members)).astype(int), len(members)]
        for piece, owner in enumerate(rng.permutation(owners)):
            for index in range(edges[piece], edges[piece + 1]):
                held[owner].append(int(members[index]))
    for receiver in held:
        while len(receiver) < least:
            donor = max(held, key=len)
            receiver.append(donor.pop(int(rng.integers(len(donor)))))
    return [sorted(mine) for mine in held]


@given(**CASES)
@settings(max_examples=25)
def test_single_samples_are_assigned_as_by_the_plain_loop(
    samples: int, classes: int, owners: int, alpha: float, seed: int
) -> None:
    labels, owners = labels_of(samples, classes, seed), min(owners, samples)
    least = samples // owners
    held = split(dataset(labels), owners, seed, dirichlet_alpha=alpha, min_samples=least)
    plain = plain_dirichlet(labels, owners, alpha, least, np.random.default_rng(seed))
    assert [mine.tolist() for mine in held] == plain


def test_small_alpha_gives_few_classes_and_large_alpha_all() -> None:
    labels = labels_of(20_000, 10, 0)

    def largest_share(alpha: float) -> float:
        held = counts(labels, split(dataset(labels), 20, dirichlet_alpha=alpha))
        return float((held.max(axis=1) / held.sum(axis=1)).mean())

    assert largest_share(0.1) > 0.4
    assert largest_share(100.0) < 0.2


def test_a_very_large_alpha_leaves_out_no_owner_where_classes_have_fewer_samples_than_owners() -> None:
    labels = np.repeat(np.arange(12), 70).astype(np.int32)
    sizes = [len(held) for held in dirichlet(SampleGroups.of(dataset(labels)), 100, 1e6, np.random.default_rng(0))]
    assert 3 <= min(sizes) <= max(sizes) <= 12  # 0.7 of each class on average; standard deviation about 1.6


@pytest.mark.parametrize(
    ("keys", "fewest", "most"),
    [
        ({"partition": "iid"}, 8, 10),
        ({"partition": "shards", "shards_per_cv": 1}, 1, 1),
        ({"partition": "shards", "shards_per_cv": 5}, 1, 5),  # no piece of these has two classes
    ],
)
def test_iid_and_shards_give_every_owner_the_same_number(keys: dict[str, object], fewest: int, most: int) -> None:
    labels = np.repeat(np.arange(10), 100).astype(np.int32)
    held = counts(labels, split(dataset(labels), 20, **keys))
    assert set(held.sum(axis=1)) == {50}
    classes = (held > 0).sum(axis=1)
    assert fewest <= classes.min() <= classes.max() <= most


def test_groups_are_cut_as_near_as_possible() -> None:
    groups = SampleGroups.of(dataset(np.zeros(100, np.int32), np.repeat(np.arange(4), [10, 20, 30, 40])))
    pieces = groups.cut(np.arange(4), np.array([14, 16, 19, 21, 61]))
    assert [piece.tolist() for piece in pieces] == [[0], [], [], [1], [2], [3]]


GROUPS = np.repeat(np.arange(3), 10)


@pytest.mark.parametrize(
    ("data", "owners", "keys", "words"),
    [
        (dataset(labels_of(30, 3, 0), GROUPS), 2, {"min_samples": 15}, "3 groups of up to 10 samples"),
        (dataset(labels_of(99, 3, 0)), 10, {"min_samples": 10}, "need 100 samples, but the training set has 99: "),
        (dataset(labels_of(150, 3, 0)), 10, {"partition": "shards", "shards_per_cv": 20}, "need 200 shards"),
        (dataset(labels_of(600, 12, 0)), 5, {"holders": 4}, "data.holders = 4 has no share"),
        (dataset(labels_of(600, 12, 0)), 5, {"holders": 20, "min_samples": 40}, "each need 800 samples"),
    ],
)
def test_what_is_impossible_is_refused(data: Dataset, owners: int, keys: dict[str, object], words: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        split(data, owners, **keys)
    [problem] = refused.value.problems
    assert words in problem


def test_cvs_take_the_shares_of_a_fixed_number_of_holders_in_the_order_of_entry() -> None:
    data, table = dataset(labels_of(600, 12, 0)), DataTable.model_validate({"holders": 9, "min_samples": 5})

    def held_by(*cvs: int) -> dict[int, list[int]]:
        shares = partition(data, np.array(cvs), table, np.random.default_rng(4))
        return {cv: own.tolist() for cv, own in shares.items()}

    everybody, some = held_by(7, 2, 5, 1, 0, 3, 4, 8, 6), held_by(7, 2, 5)
    assert some == {cv: everybody[cv] for cv in (2, 5, 7)}
    assert [*some] == [2, 5, 7]
    assert sorted(sample for own in everybody.values() for sample in own) == [*range(600)]
    assert held_by(1, 7) == {1: everybody[7], 7: everybody[2]}  # shares go by entry, not by number
