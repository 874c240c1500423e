"""Allocation with given powers, against all assignments of pRBs to CVs tried one by one."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.optimize.problems import random_problem
from vefl_sim.optimize.rat.problem import RatAllocation, RatProblem, solve


def with_powers(cvs: int, prbs: int, seed: int, tightness: float = 0.5) -> RatProblem:
    rng = np.random.default_rng(seed)
    problem = random_problem(cvs, prbs, seed, tightness=tightness)
    return replace(problem, prb_power_w=problem.max_power_w * 10 ** rng.uniform(-2.0, 0.0, cvs))


def rates(problem: RatProblem, owner: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Powers on the pRBs and rates of the CVs for these owners (−1: nobody)."""
    owned = [max(1, owner.count(v)) for v in range(len(problem.bits_left))]
    given_w = [min(w, most / n) for w, most, n in zip(problem.prb_power_w, problem.max_power_w, owned, strict=True)]
    watts = np.array([given_w[v] if v >= 0 else 0.0 for v in owner])
    rate = np.zeros(len(owned))
    for prb, v in enumerate(owner):
        if v >= 0:
            rate[v] += problem.bandwidth_hz * np.log2(1 + watts[prb] * problem.snr_per_watt[v, prb])
    return watts, np.minimum(rate, problem.bits_left / problem.slot_s)


def objective(problem: RatProblem, owner: tuple[int, ...]) -> tuple[bool, float, float]:
    """Whether all floors are met, the total deficit, and −U."""
    watts, rate = rates(problem, owner)
    deficit = np.maximum(problem.floor_bps - rate, 0.0)
    met = bool(np.all(deficit <= 1e-9 * problem.floor_bps))
    weight = problem.tradeoff + problem.slot_s * problem.bits_left
    return met, deficit.sum(), float(weight @ rate - problem.tradeoff * problem.efficiency * watts.sum())


def best(problem: RatProblem) -> tuple[bool, float, float]:
    cvs, prbs = problem.snr_per_watt.shape
    tried = [objective(problem, owner) for owner in product(range(-1, cvs), repeat=prbs)]
    lawful = [(True, deficit, value) for met, deficit, value in tried if met]
    return max(lawful, key=lambda row: row[2]) if lawful else min(tried, key=lambda row: (row[1], -row[2]))


def check(problem: RatProblem, allocation: RatAllocation) -> None:
    """Powers and rates are those of the owners."""
    watts, rate = rates(problem, tuple(allocation.owner.tolist()))
    np.testing.assert_allclose(allocation.power_w, watts, rtol=1e-12)
    np.testing.assert_allclose(allocation.rate_bps, rate, rtol=1e-9)


@given(st.integers(1, 4), st.integers(0, 10**6), st.sampled_from([0.1, 0.5, 3.0]))
def test_the_best_sets_of_all(cvs: int, seed: int, tightness: float) -> None:
    problem = with_powers(cvs, 4, seed, tightness)
    allocation = solve(problem)
    check(problem, allocation)
    met, deficit, value = best(problem)
    assert allocation.status == ("optimal" if met else "infeasible_floors")
    ours = objective(problem, tuple(allocation.owner.tolist()))
    if met:
        assert ours[2] == pytest.approx(value, rel=1e-9)
        assert allocation.bound == allocation.objective == pytest.approx(value, rel=1e-9)
    else:
        assert ours[1] == pytest.approx(deficit, rel=1e-6)


@pytest.mark.parametrize("method", ["equal", "max-snr", "proportional-fair"])
@pytest.mark.parametrize(("cvs", "prbs"), [(1, 3), (3, 5), (5, 30)])
def test_policies_send_with_the_given_powers(method: str, cvs: int, prbs: int) -> None:
    problem = with_powers(cvs, prbs, 3)
    allocation = solve(problem, method)
    check(problem, allocation)
    assert allocation.status == "policy"


@pytest.mark.parametrize("cvs", [1, 4, 20])
def test_many_prbs_are_a_policy_that_claims_nothing(cvs: int) -> None:
    problem = with_powers(cvs, 20, 5)
    allocation = solve(problem)
    check(problem, allocation)
    assert allocation.status == "policy"
    assert np.isnan(allocation.bound)
    assert objective(problem, tuple(allocation.owner.tolist()))[2] > 0


@pytest.mark.parametrize("out_of_reach", [0, 2, 4])
def test_a_floor_out_of_reach_does_not_cost_the_others_theirs(out_of_reach: int) -> None:
    problem = with_powers(5, 20, 5, tightness=0.1)
    problem.floor_bps[out_of_reach] = problem.bits_left[out_of_reach] = 1e15
    problem = replace(problem, prb_power_w=problem.max_power_w)
    _, rate = rates(problem, tuple(solve(problem).owner.tolist()))
    assert (rate >= problem.floor_bps).tolist() == [v != out_of_reach for v in range(5)]
