"""Effects of swept keys, against sums by hand, plain loops and models whose effects are known."""

import math
from itertools import product
from statistics import mean

import numpy as np
import pytest

from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import BadInput
from vefl_sim.sweep.effects import Factor, Factorial, complete_factorial

T_2 = 4.30265  # 97.5 % point of Student's t with 2 degrees of freedom


def factorial(values: Floats) -> Factorial:
    """A factorial with factors A, B, …, whose levels are 0, 1, …, and the seeds 1, 2, …"""
    names = "ABCDE"
    factors = [Factor(names[axis], tuple(map(str, range(n)))) for axis, n in enumerate(values.shape[:-1])]
    return complete_factorial(factors, range(1, values.shape[-1] + 1), values)


def plain_shares(values: Floats) -> dict[str, float]:
    """The shares of two factors, from the textbook's sums of squares in plain loops."""
    a, b, n = values.shape
    cells = [*product(range(a), range(b), range(n))]
    grand = mean(values[c] for c in cells)
    of_a = [mean(values[c] for c in cells if c[0] == i) for i in range(a)]
    of_b = [mean(values[c] for c in cells if c[1] == j) for j in range(b)]
    of_seed = [mean(values[c] for c in cells if c[2] == s) for s in range(n)]
    of_cell = {(i, j): mean(values[i, j, s] for s in range(n)) for i in range(a) for j in range(b)}
    squares = {
        "A": b * n * sum((m - grand) ** 2 for m in of_a),
        "B": a * n * sum((m - grand) ** 2 for m in of_b),
        "A × B": n * sum((m - of_a[i] - of_b[j] + grand) ** 2 for (i, j), m in of_cell.items()),
        "seeds": a * b * sum((m - grand) ** 2 for m in of_seed),
    }
    total = sum((values[c] - grand) ** 2 for c in cells)
    return {name: own / total for name, own in squares.items()} | {"rest": 1 - sum(squares.values()) / total}


@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 4, 5), (2, 5, 1)])
def test_shares_are_those_of_plain_loops(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).normal(5.0, 2.0, shape)
    shares = factorial(values).shares
    assert shares["share"].to_dict() == pytest.approx(plain_shares(values), abs=1e-12)
    a, b, seeds = (n - 1 for n in shape)
    assert shares["df"].tolist() == [a, b, a * b, seeds, (a + 1) * (b + 1) * seeds - seeds]


def test_an_additive_model_has_no_interaction() -> None:
    a, b, seeds = np.array([0.1, 0.7, 0.3]), np.array([0.2, 0.9]), np.array([0.01, 0.05, 0.03])
    own = factorial(a[:, None, None] + b[None, :, None] + seeds)
    assert own.shares["share"]["A × B"] == pytest.approx(0, abs=1e-12)
    assert own.shares["share"]["rest"] == pytest.approx(0, abs=1e-12)
    rows = own.contrasts.set_index(["effect", "change"])
    assert rows.loc[("A", "0 → 1"), ["difference", "half_width"]].tolist() == pytest.approx([0.6, 0.0])
    interactions = own.contrasts[own.contrasts["effect"] == "A × B"]
    assert interactions[["difference", "half_width"]].to_numpy().tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert not interactions["differs"].any()


def test_differences_are_averaged_over_the_other_keys_and_paired_by_seed() -> None:
    values = np.random.default_rng(2).normal(0.0, 1.0, (2, 3, 2, 3))
    rows = factorial(values).contrasts.set_index(["effect", "change"])
    by_seed = [mean((values[1, j, k, s] - values[0, j, k, s]) for j in range(3) for k in range(2)) for s in range(3)]
    own = rows.loc[("A", "0 → 1")]
    assert own["difference"] == pytest.approx(mean(by_seed))
    assert own["half_width"] == pytest.approx(T_2 * np.std(by_seed, ddof=1) / math.sqrt(3), rel=1e-5)
    cell = [
        mean(values[1, 2, k, s] - values[1, 0, k, s] - values[0, 2, k, s] + values[0, 0, k, s] for k in range(2))
        for s in range(3)
    ]
    assert rows.loc[("A × B", "0 → 1; 0 → 2"), "difference"] == pytest.approx(mean(cell))
    assert len(rows) == (1 + 2 + 1) + (2 + 1 + 2)


def test_three_factors_add_up_to_all_of_the_variance() -> None:
    shares = factorial(np.random.default_rng(3).normal(0.0, 1.0, (2, 3, 2, 4))).shares
    assert shares["share"].sum() == pytest.approx(1)
    assert shares["df"].sum() == 2 * 3 * 2 * 4 - 1
    a, b, c = np.meshgrid([-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0], indexing="ij")
    shares = factorial(np.stack([a * b * c, a * b * c + 1.0], axis=-1)).shares
    assert shares["share"].to_dict() == pytest.approx(
        dict.fromkeys(["A", "B", "C", "A × B", "A × C", "B × C", "rest"], 0.0) | {"three or more": 0.8, "seeds": 0.2}
    )
    many = factorial(np.random.default_rng(5).normal(0.0, 1.0, (2,) * 5 + (1,))).shares
    assert len(many) == 5 + 10 + 3  # quick even with the many columns of a stranger's table


def test_one_seed_has_no_intervals_and_one_number_no_shares() -> None:
    own = factorial(np.arange(4.0).reshape(2, 2, 1))
    assert own.contrasts["half_width"].isna().all()
    assert not own.contrasts["differs"].any()
    assert factorial(np.full((2, 2, 2), 0.3)).shares["share"].tolist() == [0, 0, 0, 0, 0]


def test_an_incomplete_seed_or_level_is_left_out() -> None:
    values = np.random.default_rng(4).normal(0.0, 1.0, (3, 3, 3))
    without_seed = values.copy()
    without_seed[:, :2, 2] = math.nan
    own = factorial(without_seed)
    assert (own.left_out, own.seeds) == ("Not used, because points are missing: seed 3.", (1, 2))
    assert np.array_equal(own.values, values[:, :, :2])
    without_level = values.copy()
    without_level[1] = math.inf
    own = factorial(without_level)
    assert own.left_out == "Not used, because points are missing: A = 1."
    assert own.factors[0].levels == ("0", "2")
    values = np.zeros((2, 2, 1))
    values[1, 0, 0] = math.nan
    with pytest.raises(BadInput, match=r"but 1 of 4 points are missing, the first is A = 1, B = 0, seed 1: run them"):
        factorial(values)


def test_the_strongest_factors() -> None:
    a, b, c = np.meshgrid([0.0, 1.0], [0.0, 0.1, 0.2], [0.0, 5.0], indexing="ij")
    own = factorial((a + b + c)[..., None])
    assert own.strongest == (0, 2)
    assert own.means(*own.strongest)[..., 0].tolist() == [
        pytest.approx([0.1, 5.1]),
        pytest.approx([1.1, 6.1]),
    ]


def test_factors_of_the_same_name_are_told_apart() -> None:
    values = np.ones((2, 2, 2))
    same = complete_factorial([Factor("scheme", ("a", "b")), Factor("scheme", ("c", "d"))], (1, 2), values)
    assert [*same.shares.index[:2]] == ["scheme", "scheme (2)"]
