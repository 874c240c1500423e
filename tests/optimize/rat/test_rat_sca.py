"""The paper's Algorithm 4: feasible, and never above the optimum."""

from dataclasses import replace

import numpy as np
import pytest

from tests.optimize.problems import random_problem
from tests.optimize.rat.rat_laws import check, rounding
from vefl_sim.optimize.rat.problem import RatProblem, solve
from vefl_sim.optimize.rat.sca import algorithm4

pytest.importorskip("cvxpy")


def problem_of(cvs: int, prbs: int, seed: int) -> RatProblem:
    """A random problem with floors of 30 % of what equal shares of the pRBs carry."""
    problem = random_problem(cvs, prbs, seed)
    return replace(problem, floor_bps=0.3 * solve(problem, "equal").rate_bps)


@pytest.mark.parametrize("perspective", [False, True])
@pytest.mark.parametrize(("cvs", "prbs", "seed"), [(1, 4, 0), (2, 6, 1), (3, 6, 3), (5, 5, 5)])
def test_feasible_and_never_above_the_optimum(cvs: int, prbs: int, seed: int, perspective: bool) -> None:
    problem = problem_of(cvs, prbs, seed)
    allocation, best = algorithm4(problem, perspective=perspective), solve(problem, "exact")
    check(problem, allocation, bounded=False)
    assert np.isnan(allocation.bound)
    if allocation.status == "gap":
        assert best.status == "optimal"
        assert allocation.objective <= best.objective + rounding(problem, best)
    else:
        assert allocation.status == "infeasible_floors"


def test_the_perspective_form_gets_close_for_two_cvs() -> None:
    problems = [problem_of(2, 8, seed) for seed in range(8)]
    pairs = [(algorithm4(problem, perspective=True), solve(problem, "exact")) for problem in problems]
    shares = [ours.objective / best.objective for ours, best in pairs if ours.status == "gap"]
    assert len(shares) >= 3
    assert np.mean(shares) > 0.9


def test_equal_sharing_if_nothing_can_be_solved() -> None:
    impossible = np.full(2, 1e12)
    problem = replace(random_problem(2, 4, 0), floor_bps=impossible, bits_left=impossible)
    allocation = algorithm4(problem)
    assert allocation.owner.tolist() == [0, 1, 0, 1]
    assert allocation.status == "infeasible_floors"
