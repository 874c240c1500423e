"""Attack the methods for the VEFL sub-problem with rounds from realistic to absurd, against the laws of a plan."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from tests.fuzz.problems import Fields, ProblemAttack, log_uniform, one_of
from tests.optimize.vefl.vefl_problems import brute_force, check_constraints, realistic_problem
from vefl_sim.core.arrays import Floats
from vefl_sim.optimize.vefl.problem import METHODS, REFERENCES, VeflProblem, solve

FORCE = 20_000  # combinations of iterations that brute force goes through
ROUNDING = 1e-9
DENORMAL = 5e-324


def draw(rng: np.random.Generator) -> Fields:
    """A round like those of a run (one in five), or an absurd one; in one of 500 the slow references plan it, too."""
    if rng.random() < 0.2:
        cvs, l_max = int(rng.integers(0, 30)), int(rng.choice([1, 10, 100]))
        problem = realistic_problem(int(rng.integers(2**31)), cvs, l_max=l_max, budget=log_uniform(rng, 0.5, 3.5))
        fields = asdict(replace(problem, max_selected=int(rng.integers(1, 12))))
    else:
        fields = absurd(rng, int(rng.integers(0, 9)), int(rng.choice([1, 2, 3, 3, 6, 50])))
    return fields | {"everybody": bool(rng.random() < 0.3), "references": bool(rng.random() < 1 / 500)}


def absurd(rng: np.random.Generator, cvs: int, l_max: int) -> Fields:
    """Any magnitudes, in which limits still bind: each is drawn freely, or near the value at which it would."""
    cycles, cpu_max_hz = numbers(rng, cvs, 0, 30), numbers(rng, cvs, 0, 15)
    time_s = one_of(rng, cycles / cpu_max_hz * log_uniform(rng, -1, 3, cvs), numbers(rng, cvs, -9, 9))
    capacitance = float(one_of(rng, 2e-28, log_uniform(rng, -60, 0)))
    energy_j = capacitance / 2 * cycles * cpu_max_hz**2
    budget_j = one_of(rng, energy_j * log_uniform(rng, -3, 3, cvs), numbers(rng, cvs, -30, 30))
    price = one_of(rng, np.zeros(cvs), numbers(rng, cvs, -20, 20))
    few, any_weights = rng.choice([0.0, 1e-300, 0.5, 1.0], cvs), numbers(rng, cvs, -30, 30)
    fields = {
        "weight": one_of(rng, rng.dirichlet(np.ones(cvs)) if cvs else few, np.ones(cvs), few, any_weights),
        "cycles": cycles,
        "time_s": np.where(rng.random(cvs) < 0.1, rng.choice([-1.0, 0.0, DENORMAL, 1e100]), time_s),
        "tx_energy_j": budget_j * one_of(rng, 0.0, 1.0, log_uniform(rng, -9, 0.1, cvs)),
        "energy_budget_j": budget_j,
        "price_per_joule": price,
        "base_fee": one_of(rng, np.zeros(cvs), price * budget_j, numbers(rng, cvs, -20, 20)),
        "cpu_min_hz": cpu_max_hz * one_of(rng, 1.0, log_uniform(rng, -9, 0.1, cvs)),
        "cpu_max_hz": cpu_max_hz,
        "cpu_capacitance": capacitance,
        "budget": 0.0,
        "max_selected": int(rng.integers(1, cvs + 2)),
        "min_iterations": int(rng.integers(1, l_max + 1)),
        "max_iterations": l_max,
    }
    return fields | {"budget": budget(rng, VeflProblem(**fields))}


def numbers(rng: np.random.Generator, cvs: int, low: float, high: float) -> Floats:
    """One number per CV from 10^low to 10^high: any, near each other, or all the same."""
    one = log_uniform(rng, low, high)
    return one_of(rng, log_uniform(rng, low, high, cvs), one * rng.uniform(1, 3, cvs), one * np.ones(cvs))


def budget(rng: np.random.Generator, problem: VeflProblem) -> float:
    """A budget that buys some plan to the last cent, a share of all plans, or anything."""
    column = np.maximum(problem.most, 1) - 1
    costs = problem.cost[np.arange(len(column)), column][problem.most > 0] if len(column) else np.zeros(0)
    some = costs[rng.random(len(costs)) < 0.5].sum()
    return float(one_of(rng, some, costs.sum() * rng.uniform(0, 1.2), log_uniform(rng, -30, 30)))


def laws(fields: Fields) -> None:
    """All methods keep the constraints, and none beats the exact one, which brute force confirms if it can.

    With a budget that allows for rounding, a combination of iterations is worth as much as the exact plan.
    """
    references = fields.pop("references", False)
    values: dict[str, Any] = {name: np.array(v, float) if isinstance(v, list) else v for name, v in fields.items()}
    problem = VeflProblem(**values)
    plans = {method: solve(problem, method) for method in METHODS + REFERENCES * references}
    exact = plans["exact"]
    for plan in plans.values():
        check_constraints(problem, plan)
        assert plan.dropped == exact.dropped
        assert plan.objective <= exact.objective * (1 + ROUNDING)
        assert plan.bound >= exact.objective * (1 - ROUNDING)
    if len(problem.cycles) and np.prod(problem.most + 1.0) <= FORCE:
        selecting = replace(problem, everybody=False, max_selected=len(problem.cycles)) if exact.dropped else problem
        best = max(brute_force(selecting), 0.0)
        assert best <= exact.objective * (1 + ROUNDING)
        if best < exact.objective * (1 - ROUNDING):
            best = brute_force(replace(selecting, budget=selecting.budget * (1 + ROUNDING)))
            assert best >= exact.objective * (1 - ROUNDING)


ATTACK = ProblemAttack("vefl-problems", 100_000, draw, laws)
