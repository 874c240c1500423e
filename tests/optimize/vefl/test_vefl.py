"""The VEFL planner against numbers worked out by hand and against brute force."""

from dataclasses import replace

import numpy as np
import pytest

from tests.fuzz import vefl_problems as absurd_rounds
from tests.optimize.problems import saved_problems
from tests.optimize.vefl.vefl_problems import realistic_problem, worked_example
from vefl_sim.optimize.vefl.problem import METHODS, REFERENCES, VeflProblem, solve


def test_limits_of_the_worked_example() -> None:
    problem = worked_example()
    assert problem.most.tolist() == [50, 20, 0]
    assert problem.cost[0, 49] == pytest.approx(18.8125)
    assert problem.cost[1, 19] == pytest.approx(27.0)
    assert problem.limits() == ["iterations", "cpu", "time"]


@pytest.mark.parametrize("everybody", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_slack_budget_is_solved_to_optimality(method: str, everybody: bool) -> None:
    plan = solve(replace(worked_example(), everybody=everybody), method)
    assert (plan.selected.tolist(), plan.iterations.tolist()) == ([0, 1], [50, 20])
    assert plan.objective == pytest.approx(31.0)
    assert plan.cost == pytest.approx(45.8125)
    assert plan.status == "optimal"
    assert plan.gap == 0.0
    assert not plan.dropped


@pytest.mark.parametrize("everybody", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_binding_budget_of_the_worked_example(method: str, everybody: bool) -> None:
    plan = solve(replace(worked_example(), budget=30.0, everybody=everybody), method)
    assert plan.iterations.tolist() == [48, 8]
    assert plan.objective == pytest.approx(26.4)
    assert plan.cost == pytest.approx(29.936)
    assert plan.status == ("optimal" if method == "exact" else "gap")


@pytest.mark.parametrize("method", METHODS + REFERENCES)
@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"budget": 5.0}, "budget_buys_nobody"),
        ({"budget": 0.0}, "budget_buys_nobody"),
        ({"time_s": np.array([-1.0, 0.0, -0.1])}, "nobody_eligible"),
        ({"energy_budget_j": np.full(3, 0.01)}, "nobody_eligible"),
    ],
)
def test_rounds_in_which_no_cv_can_train_are_results_not_errors(change: dict, status: str, method: str) -> None:
    for everybody in (False, True):
        plan = solve(replace(worked_example(), **change, everybody=everybody), method)
        assert plan.status == status
        assert len(plan.selected) == 0
        assert plan.cost == 0.0
        assert plan.gap == 0.0
        assert plan.dropped == (everybody and status == "budget_buys_nobody")


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match="use one of lagrangian, exact, sca, sca-printed"):
        solve(worked_example(), "simplex")


def test_the_laws_of_a_plan_hold_at_any_scale() -> None:
    """Problems and laws are those of the attack "vefl-problems": new ones, and those that once broke a method."""
    rng = np.random.default_rng(1)
    for fields in [*(absurd_rounds.draw(rng) for _ in range(150)), *saved_problems("vefl-problems")]:
        absurd_rounds.laws(fields | {"references": False})


@pytest.mark.parametrize("everybody", [False, True])
def test_gaps_of_realistic_rounds_are_small(everybody: bool) -> None:
    plans = [solve(_half_the_budget(seed, everybody)) for seed in range(20)]
    assert np.mean([plan.gap for plan in plans]) <= 0.005


def _half_the_budget(seed: int, everybody: bool) -> VeflProblem:
    problem = replace(realistic_problem(seed, 35, budget=1e9), everybody=everybody)
    return replace(problem, budget=solve(problem).cost / 2)


@pytest.mark.parametrize("method", METHODS)
def test_all_cvs_take_part_or_the_plan_is_marked_as_dropped(method: str) -> None:
    problem = replace(worked_example(), everybody=True, max_selected=1)
    entry = float(problem.entry_cost.sum())
    assert solve(replace(problem, budget=entry + 1e-6), method).iterations.tolist() == [1, 1]
    dropped = solve(replace(problem, budget=entry - 1e-6), method)
    selecting = solve(replace(problem, budget=entry - 1e-6, everybody=False, max_selected=3), method)
    assert dropped.dropped
    assert not selecting.dropped
    assert dropped.selected.tolist() == selecting.selected.tolist() == [0]
    assert dropped.iterations.tolist() == selecting.iterations.tolist()
    assert (dropped.objective, dropped.bound, dropped.status) == (
        selecting.objective,
        selecting.bound,
        selecting.status,
    )
