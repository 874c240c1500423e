"""The RAT methods against enumeration, a grid search, and the constraints of the paper."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.optimize.problems import COMPILED, random_problem
from tests.optimize.rat.rat_problems import enumerated
from vefl_sim.optimize.rat.allocate import best_sets
from vefl_sim.optimize.rat.edf import Backlog, edf
from vefl_sim.optimize.rat.large import powers
from vefl_sim.optimize.rat.problem import RatAllocation, RatProblem, new_allocation, solve
from vefl_sim.optimize.rat.water import demand_of, water_fill


def utility(problem: RatProblem, allocation: RatAllocation) -> float:
    """−U as the paper prints it."""
    worth = problem.tradeoff + problem.slot_s * problem.bits_left
    energy = problem.tradeoff * problem.efficiency * allocation.power_w.sum()
    return float((allocation.rate_bps * worth).sum() - energy)


def deficit_bps(problem: RatProblem, allocation: RatAllocation) -> float:
    missed = np.maximum(0, problem.floor_bps - allocation.rate_bps).sum()
    return 0.0 if missed <= 1e-8 * problem.floor_bps.sum() else float(missed)


def test_exact_equals_enumeration() -> None:
    """Random problems with V ≤ 3, Z ≤ 6; some with floors that cannot be met."""
    for seed in range(40):
        cvs = 1 + seed % 3
        prbs = max(cvs, 2 + seed % (5 if cvs < 3 else 4))
        problem = random_problem(cvs, prbs, seed, tightness=3.0)
        least, best = enumerated(problem.scaled)
        for method in ("exact", "auto"):
            allocation = solve(problem, method)
            assert deficit_bps(problem, allocation) == pytest.approx(least * problem.nats_hz, rel=1e-6, abs=1e-3)
            assert allocation.status == ("infeasible_floors" if deficit_bps(problem, allocation) else "optimal")
            assert allocation.objective == pytest.approx(utility(problem, allocation), rel=1e-9, abs=1e-3)
            if allocation.status == "optimal":
                best_objective = best * problem.nats_hz * problem.largest_weight
                assert allocation.objective == pytest.approx(best_objective, rel=1e-7, abs=1e-3)


def test_one_prb_each_is_optimal_with_as_many_cvs_as_prbs() -> None:
    problems = [random_problem(2 + seed % 9, 2 + seed % 9, seed, tightness=0.1) for seed in range(40)]
    assert sum(one_prb_each_is_optimal(problem) for problem in problems) > 10


def one_prb_each_is_optimal(problem: RatProblem) -> bool:
    """Compare the assignment with the exact method, if its floors are feasible; whether they are."""
    cvs, one_each, scaled = len(problem.bits_left), solve(problem, "assignment"), problem.scaled
    by_subsets = new_allocation(cvs, cvs)
    best_sets(scaled, None, True, by_subsets.owner)  # `solve` would use the assignment here
    objective = powers(scaled, by_subsets)
    if one_each.status != "optimal":
        return False
    assert sorted(one_each.owner) == list(range(cvs))
    assert one_each.objective == pytest.approx(objective * problem.nats_hz * problem.largest_weight, rel=1e-9)
    return True


def test_with_as_many_cvs_as_prbs_auto_misses_no_more_than_large() -> None:
    for seed in range(10):
        problem = random_problem(14, 14, seed, tightness=300.0)
        auto, large = solve(problem, "auto"), solve(problem, "large")
        assert auto.status == "infeasible_floors"
        assert np.isnan(auto.bound)
        assert deficit_bps(problem, auto) <= deficit_bps(problem, large) * (1 + 1e-9)


@pytest.mark.parametrize("prbs", [1, 2, 3])
def test_water_level_is_the_best_of_a_fine_grid(prbs: int) -> None:
    """No powers on a grid of step P_max/60 beat the closed form."""
    tried = 0.2 / 60 * np.array([step for step in product(range(61), repeat=prbs) if sum(step) <= 60])
    for seed in range(50):
        scaled, watts = random_problem(1, prbs, seed).scaled, np.zeros(prbs)
        floor, cap, price = scaled.floor[0], scaled.cap[0], scaled.price
        rate, spent = water_fill(scaled.gain[0], np.arange(prbs), demand_of(scaled, 0), watts)
        rates = np.log1p(scaled.gain[0] * tried).sum(axis=1)
        lawful = (floor <= rates) & (rates <= cap)
        best = (scaled.weight[0] * rates - price * tried.sum(axis=1))[lawful].max(initial=-np.inf)
        assert best <= scaled.weight[0] * rate - price * spent + 1e-9 * max(rate, 1)
        assert rate >= floor * (1 - 1e-9) or not lawful.any()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"snr_per_watt": np.zeros((2, 0))}, "can share 0 pRBs"),
        ({"snr_per_watt": np.zeros((2, 1))}, "can share 1 pRBs"),
        ({"snr_per_watt": np.full((2, 4), -1.0)}, "snr_per_watt"),
        ({"bits_left": np.ones(3)}, "bits_left"),
        ({"efficiency": np.inf}, "efficiency"),
        ({"slot_s": 0.0}, "positive"),
    ],
)
def test_bad_problems_are_refused(change: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(random_problem(2, 4, 0), **change)


def test_unknown_and_oversized_methods() -> None:
    with pytest.raises(ValueError, match="unknown method 'magic'"):
        solve(random_problem(2, 4, 0), "magic")
    with pytest.raises(ValueError, match="at most 12 pRBs"):
        solve(random_problem(2, 13, 0), "exact")


BITS = np.array([10.0, 3.0])


@pytest.mark.parametrize("method", COMPILED)
def test_few_bits_are_all_sent_and_no_more(method: str) -> None:
    """Power costs nothing here (β = 0), and any pRB could carry more than ten bits."""
    for seed in range(5):
        problem = replace(random_problem(2, 6, seed), bits_left=BITS, floor_bps=np.zeros(2), efficiency=0.0)
        allocation = solve(problem, method)
        owns = np.isin([0, 1], allocation.owner)
        assert owns.all() or method in ("max-snr", "proportional-fair")  # which may leave a CV without a pRB
        assert allocation.rate_bps * problem.slot_s == pytest.approx(np.where(owns, BITS, 0.0), rel=1e-6)


# Algorithm 3


def backlog(deadlines: list[int], bits: list[float]) -> Backlog:
    return Backlog(0, np.arange(len(bits)), np.array(deadlines), np.array(bits), np.ones(len(bits)))


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(1, 3)), min_size=1, max_size=12), st.integers(1, 12))
def test_edf_equals_plain_sorting(rows: list[tuple[int, float]], limit: int) -> None:
    waiting = backlog([deadline for deadline, _ in rows], [bits for _, bits in rows])
    literal = sorted(range(len(rows)), key=lambda row: (rows[row][0], -rows[row][1], row))[:limit]
    assert edf(waiting, limit).tolist() == literal
