"""The pruned search finds the owners that dynamic programming over all subsets finds, ties included, or gives up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vefl_sim.optimize.rat.allocate import best_sets
from vefl_sim.optimize.rat.exact import prune
from vefl_sim.optimize.rat.problem import SlotProblem


def slot(
    rng: np.random.Generator,
    cvs: int,
    prbs: int = 10,
    *,
    dear: float = 1.0,
    tight: float = 1.0,
    levels: int = 0,
    weak: float = 1.0,
) -> SlotProblem:
    """A slot as in runs: fading of four antennas, CVs near and far, floors far below what one pRB carries.

    dear: price of power, from 0.01 (all power is spent) to 100 (only the floors are sent); tight: scales floors and
    caps; levels: the number of different gains per CV (0: all differ); weak: scales the SNR, and the rest with it.
    """
    gain = rng.gamma(4, size=(cvs, prbs))
    if levels:
        gain = np.ceil(gain * levels / gain.max()) / levels * gain.max()
    gain *= weak * 10 ** rng.uniform(0.5, 2.5, (cvs, 1))
    floor = tight * weak * rng.uniform(0.005, 0.4, cvs)
    return SlotProblem(
        gain, rng.uniform(0.4, 1, cvs), dear * weak * 10.0, np.full(cvs, 0.2), floor, floor * rng.uniform(1, 500, cvs),
        np.zeros(cvs),
    )  # fmt: skip


def same_owners(problem: SlotProblem) -> bool:
    """Whether the pruned search finds owners; they must be those of the full one."""
    prbs = problem.gain.shape[1]
    found, full = np.empty(prbs, np.int64), np.empty(prbs, np.int64)
    if not prune(problem, found):
        return False
    best_sets(problem, None, True, full)
    np.testing.assert_array_equal(found, full)
    return True


@pytest.mark.parametrize("cvs", [2, 4, 9])
def test_most_slots_need_no_search_of_all_subsets(cvs: int) -> None:
    problems = [slot(np.random.default_rng(seed), cvs, dear=10 ** (seed % 5 / 2 - 1)) for seed in range(100)]
    assert np.mean([same_owners(problem) for problem in problems]) >= 0.95


@given(
    seed=st.integers(0, 2**32 - 1),
    cvs=st.integers(2, 9),
    prbs=st.integers(3, 11),
    dear=st.sampled_from([0.01, 0.1, 1.0, 3.0, 10.0, 100.0]),
    tight=st.sampled_from([1e-6, 0.1, 1.0, 5.0, 30.0]),
    levels=st.sampled_from([0, 0, 1, 2, 3, 10]),
    weak=st.sampled_from([1.0, 1.0, 1e-3, 1e-6, 1e-10, 1e-13]),
)
def test_whatever_is_found_is_found_by_the_full_search(
    seed: int, cvs: int, prbs: int, dear: float, tight: float, levels: int, weak: float
) -> None:
    cvs = min(cvs, prbs - 1)
    same_owners(slot(np.random.default_rng(seed), cvs, prbs, dear=dear, tight=tight, levels=levels, weak=weak))


@pytest.mark.parametrize(("levels", "weak"), [(0, 1.0), (2, 1.0), (3, 1e-10)])
def test_ties_are_broken_as_by_the_full_search(levels: int, weak: float) -> None:
    """CVs that are the same, and pRBs that are."""
    found, names = 0, ("gain", "weight", "floor", "cap")
    for seed in range(60):
        rng = np.random.default_rng(seed)
        problem = slot(rng, 2, 4 + seed % 6, dear=10 ** rng.uniform(-1, 1.5), levels=levels, weak=weak)
        twins = problem._replace(**{name: np.repeat(getattr(problem, name)[:1], 2, axis=0) for name in names})
        found += same_owners(problem) + same_owners(twins)
    assert found > 5 or weak < 1


def test_a_prb_that_the_last_cv_might_just_use_goes_to_the_same_cv() -> None:
    """It is worth nothing but for rounding, which alone decides whether the last CV gets it, as all that is left."""
    found = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        problem = slot(rng, 2 + seed % 3, 6, dear=10 ** rng.uniform(0, 1.5))
        at_level = problem.price / problem.weight
        problem.gain[:, 5] = 0.5 * at_level
        problem.gain[-1, 5] = at_level[-1] * (1 + 10 ** rng.uniform(-9, -7.5))
        found += same_owners(problem)
    assert found > 50


def test_it_gives_up_where_a_law_of_prices_is_missing() -> None:
    problem = slot(np.random.default_rng(0), 2)
    assert same_owners(problem)
    assert not same_owners(problem._replace(price=0.0))
    assert not same_owners(problem._replace(floor=np.zeros(2)))
    assert not same_owners(problem._replace(floor=problem.floor * 1e4))  # more than all pRBs carry
