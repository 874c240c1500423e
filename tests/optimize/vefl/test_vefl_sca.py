"""The paper's Algorithm 2: feasible, never above the optimum, and close to it only with the repairs."""

from dataclasses import replace

import numpy as np
import pytest

from tests.optimize.vefl.vefl_problems import check_constraints, random_problem, realistic_problem, worked_example
from vefl_sim.optimize.vefl.problem import REFERENCES, solve
from vefl_sim.optimize.vefl.sca import LinearProgram

pytest.importorskip("cvxpy")


@pytest.mark.parametrize("everybody", [False, True])
@pytest.mark.parametrize("method", REFERENCES)
@pytest.mark.parametrize(("seed", "budget"), [(0, 30.0), (2, 100.0), (4, 1000.0)])
def test_feasible_and_never_above_the_optimum(seed: int, budget: float, method: str, everybody: bool) -> None:
    problem = random_problem(seed, cvs=8, l_max=30, budget=budget, everybody=everybody)
    plan, best = solve(problem, method), solve(problem, "exact")
    check_constraints(problem, plan)
    assert plan.objective <= best.objective * (1 + 1e-9) <= plan.bound * (1 + 2e-9)
    assert plan.dropped == best.dropped
    assert plan.status in ("optimal", "gap") if len(plan.selected) else plan.status in ("nobody_found", best.status)


def test_the_repairs_make_the_difference() -> None:
    shares: dict[str, list[float]] = {method: [] for method in REFERENCES}
    for seed in range(3):
        problem = realistic_problem(seed, 20, budget=150.0)
        best = solve(problem, "exact").objective
        for method, reached in shares.items():
            reached.append(solve(problem, method).objective / best)
    assert np.mean(shares["sca"]) > 0.9
    assert np.mean(shares["sca-printed"]) < 0.1


@pytest.mark.parametrize("method", REFERENCES)
def test_a_step_that_fails_is_not_an_error(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinearProgram, "step", lambda *_: None)
    plan = solve(worked_example(), method)
    assert plan.status == "nobody_found"
    assert plan.bound == pytest.approx(31.0)
    assert solve(replace(worked_example(), everybody=True), method).iterations.tolist() == [1, 1]
