"""The VEFL planner against numbers worked out by hand and against brute force."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vefl_sim.optimize.vefl import VeflProblem, solve


def worked_example() -> VeflProblem:
    return VeflProblem(
        weight=np.array([0.5, 0.3, 0.2]),
        cycles=np.array([1e8, 2e8, 4e7]),
        time_s=np.array([4.0, 2.0, -0.1]),
        tx_energy_j=np.full(3, 0.1),
        energy_budget_j=np.full(3, 20.0),
        price_per_joule=np.full(3, 10.0),
        base_fee=np.full(3, 10.0),
        cpu_min_hz=np.full(3, 1e3),
        cpu_max_hz=np.full(3, 2e9),
        cpu_capacitance=2e-28,
        budget=1000.0,
        max_selected=2,
        min_iterations=1,
        max_iterations=50,
    )


def random_problem(seed: int, cvs: int = 5, l_max: int = 6, budget: float = 60.0, selected: int = 3) -> VeflProblem:
    rng = np.random.default_rng(seed)
    return VeflProblem(
        weight=rng.dirichlet(np.ones(cvs)),
        cycles=rng.uniform(1e8, 2e9, cvs),
        time_s=rng.uniform(-0.5, 5.0, cvs),
        tx_energy_j=rng.uniform(0, 0.3, cvs),
        energy_budget_j=rng.uniform(1, 10, cvs),
        price_per_joule=rng.uniform(5, 10, cvs),
        base_fee=rng.uniform(10, 20, cvs),
        cpu_min_hz=rng.uniform(1e3, 5e3, cvs),
        cpu_max_hz=rng.uniform(1.9e9, 2.8e9, cvs),
        cpu_capacitance=2e-28,
        budget=budget,
        max_selected=selected,
        min_iterations=1,
        max_iterations=l_max,
    )


def brute_force(problem: VeflProblem) -> float:
    """The best Σ Θ·l over every combination of iterations, by plain loops."""
    best = 0.0
    for choice in product(*(range(hi + 1) for hi in problem.most)):
        taken = [(v, l) for v, l in enumerate(choice) if l]
        if len(taken) > problem.max_selected or any(l < problem.least[v] for v, l in taken):
            continue
        if sum(problem.cost[v, l - 1] for v, l in taken) <= problem.budget:
            best = max(best, sum(problem.weight[v] * l for v, l in taken))
    return best


def test_limits_of_the_worked_example() -> None:
    problem = worked_example()
    assert problem.most.tolist() == [50, 20, 0]
    assert problem.cost[0, 49] == pytest.approx(18.8125)
    assert problem.cost[1, 19] == pytest.approx(27.0)
    assert problem.limits() == ["iterations", "cpu", "time"]


def test_slack_budget_is_solved_to_optimality() -> None:
    plan = solve(worked_example())
    assert (plan.selected.tolist(), plan.iterations.tolist()) == ([0, 1], [50, 20])
    assert plan.objective == pytest.approx(31.0)
    assert plan.cost == pytest.approx(45.8125)
    assert plan.status == "optimal"
    assert plan.gap == 0.0


def test_one_cv_only() -> None:
    assert solve(replace(worked_example(), max_selected=1)).objective == pytest.approx(25.0)


def test_binding_budget_stays_within_its_certificate() -> None:
    plan = solve(replace(worked_example(), budget=30.0))
    assert plan.cost <= 30.0
    assert 0.99 * 26.4 <= plan.objective <= 26.4 + 1e-9 <= plan.bound + 1e-6  # l = (48, 8) is the optimum


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"budget": 5.0}, "budget_buys_nobody"),
        ({"budget": 0.0}, "budget_buys_nobody"),
        ({"time_s": np.array([-1.0, 0.0, -0.1])}, "nobody_eligible"),
        ({"energy_budget_j": np.full(3, 0.01)}, "nobody_eligible"),
    ],
)
def test_rounds_without_anybody_are_results_not_errors(change: dict, status: str) -> None:
    plan = solve(replace(worked_example(), **change))
    assert plan.status == status
    assert len(plan.selected) == 0
    assert plan.cost == 0.0


def test_empty_coverage() -> None:
    arrays = {name: value[:0] for name, value in vars(worked_example()).items() if isinstance(value, np.ndarray)}
    assert solve(replace(worked_example(), **arrays)).status == "nobody_in_coverage"


@given(st.integers(0, 10_000), st.floats(10, 200), st.integers(1, 5))
@settings(max_examples=150, deadline=None)
def test_plans_are_feasible_and_certified(seed: int, budget: float, selected: int) -> None:
    problem = random_problem(seed, budget=budget, selected=selected)
    plan = solve(problem)
    best = brute_force(problem)
    assert plan.objective <= best + 1e-9 <= plan.bound + 1e-6
    assert plan.cost <= budget + 1e-9  # C5
    assert len(plan.selected) <= selected  # C1
    for cv, l, cpu_hz in zip(plan.selected, plan.iterations, plan.cpu_hz, strict=True):
        assert l >= problem.least[cv]  # C6
        assert l * problem.cycles[cv] / cpu_hz <= problem.time_s[cv] * (1 + 1e-9)  # C2, C3
        assert cpu_hz <= problem.cpu_max_hz[cv]
        energy_j = l * problem.cpu_capacitance / 2 * problem.cycles[cv] * cpu_hz**2 + problem.tx_energy_j[cv]
        assert energy_j <= problem.energy_budget_j[cv] * (1 + 1e-9)  # C4
    if plan.status == "optimal":
        assert plan.objective == pytest.approx(best, rel=1e-9)


def test_plans_are_near_the_optimum_on_average() -> None:
    reached = [
        solve(problem).objective / best
        for seed in range(100)
        if (best := brute_force(problem := random_problem(seed, budget=40.0))) > 0
    ]
    assert np.mean(reached) > 0.99


@given(st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_bound_does_not_fall_with_the_budget(seed: int) -> None:
    bounds = [solve(random_problem(seed, cvs=20, l_max=30, budget=budget)).bound for budget in (20, 50, 100, 1000)]
    assert all(low <= high + 1e-9 for low, high in pairwise(bounds))
