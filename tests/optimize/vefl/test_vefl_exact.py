"""The exact VEFL planner: against brute force, and within the budget despite HiGHS."""

import numpy as np
import pytest
import scipy.optimize

from tests.optimize.vefl.vefl_problems import brute_force, check_constraints, random_problem
from vefl_sim.optimize.knapsack import Knapsack, exact, search
from vefl_sim.optimize.vefl.problem import solve


@pytest.mark.parametrize("seed", range(40))
def test_exact_equals_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(
        seed,
        cvs=int(rng.integers(1, 6)),
        l_max=int(rng.integers(1, 7)),
        budget=float(rng.choice([12.0, 25.0, 40.0, 60.0, 100.0, 150.0])),
        max_selected=int(rng.integers(1, 6)),
        min_iterations=int(rng.integers(1, 4)),
        everybody=bool(rng.integers(2)),
    )
    plan, quick, best = solve(problem, "exact"), solve(problem), brute_force(problem)
    check_constraints(problem, plan)
    assert plan.dropped == (problem.everybody and best < 0)
    if not plan.dropped:
        assert plan.objective == pytest.approx(max(best, 0.0), rel=1e-9)
    assert plan.status != "gap"
    assert quick.objective <= plan.objective * (1 + 1e-12)
    assert plan.objective <= quick.bound * (1 + 1e-9)


@pytest.mark.parametrize("excess", [1e-6, 1e-8, 1e-10])
def test_a_tiny_excess_over_the_budget_is_refused(excess: float) -> None:
    """Two items at (1 + excess)/2 each do not fit together, although HiGHS may accept them."""
    cost = np.array([[0.2, 0.5 * (1 + excess)], [0.2, 0.5 * (1 + excess)], [0.3, 0.45]])
    knapsack = Knapsack(np.array([[1.0, 10.0], [1.0, 10.0], [0.5, 8.0]]), cost, budget=1.0, most_items=3)
    choice = exact(knapsack, search(knapsack))
    assert choice.cost <= 1.0
    assert choice.value == pytest.approx(18.0)
    assert choice.proved


def test_covers_are_cut_off_until_the_budget_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a solver that allows 3 % more than the budget, the plans are the same."""
    problems = [random_problem(seed, cvs=5, budget=45.0) for seed in range(40)]
    expected = [solve(problem, "exact").objective for problem in problems]
    constraint_counts, original = [], scipy.optimize.milp

    def lax_milp(*args, constraints, **kwargs):
        constraint_counts.append(len(constraints))
        money = constraints[2]
        laxer = scipy.optimize.LinearConstraint(money.A, money.lb, money.ub * 1.03)
        return original(*args, constraints=[*constraints[:2], laxer, *constraints[3:]], **kwargs)

    monkeypatch.setattr(scipy.optimize, "milp", lax_milp)
    assert [solve(problem, "exact").objective for problem in problems] == pytest.approx(expected, rel=1e-9)
    assert max(constraint_counts) > 3


def test_a_solver_that_gives_up_leaves_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = next(p for seed in range(50) if solve(p := random_problem(seed, budget=45.0)).status == "gap")
    monkeypatch.setattr(scipy.optimize, "milp", lambda *_, **__: scipy.optimize.OptimizeResult(status=1))
    plan, quick = solve(problem, "exact"), solve(problem)
    assert plan.status == "gap"
    assert (plan.objective, plan.bound) == (quick.objective, quick.bound)
