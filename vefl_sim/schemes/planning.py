"""Three kinds of plan: from a solution of the optimizer, in equal shares of the budget, and without constraints."""

from dataclasses import replace

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.optimize.vefl.problem import VeflPlan, VeflProblem
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Plan
from vefl_sim.schemes.sla import column


def plan_from_solution(observation: Observation, problem: VeflProblem, solution: VeflPlan) -> Plan:
    """The plan given by a solution of the VEFL sub-problem, with the reasons why some CVs are ineligible."""
    most = dict(zip(observation.cv.tolist(), problem.most.tolist(), strict=True))
    return Plan(
        cv=observation.cv[solution.selected],
        iterations=solution.iterations,
        cpu_hz=solution.cpu_hz,
        cost=solution.cost,
        objective=solution.objective,
        bound=solution.bound,
        gap=solution.gap,
        status=solution.status,
        dropped=solution.dropped,
        ineligible=ineligible_cvs(observation, problem),
        max_iterations=most,
    )


def ineligible_cvs(observation: Observation, problem: VeflProblem) -> dict[int, str]:
    """CVs that cannot do a single iteration -> the constraint that prevents it."""
    limits = zip(observation.cv.tolist(), problem.most.tolist(), problem.limits(), strict=True)
    return {cv: limit for cv, most, limit in limits if most == 0}


def empty_status(observation: Observation) -> str:
    """Status of a plan without orders because no CV was observed."""
    return "nobody_asks" if observation.snapshot.in_coverage else "nobody_in_coverage"


def unconstrained_plan(observation: Observation, rows: Ints) -> Plan:
    """A plan without constraints: these CVs do l_max iterations at full speed and deliver, at any cost and delay."""
    limit_hz = column(observation.snapshot.agreements, "cpu_max_hz")[rows]
    return Plan(
        cv=observation.cv[rows],
        iterations=np.full(len(rows), observation.constants.max_iterations),
        cpu_hz=limit_hz,
        status="unconstrained" if len(rows) else empty_status(observation),
        bypasses_network=True,
    )


def equal_shares_for_all(observation: Observation, constrained: bool) -> Plan:
    """A plan for all CVs of the observation: a share Ξ/V of the budget each, or without constraints."""
    rows = np.arange(len(observation.cv))
    if not constrained:
        return unconstrained_plan(observation, rows)
    return replace(equal_share(observation, rows, shares=observation.snapshot.in_coverage), limited=False)


def equal_share(observation: Observation, rows: Ints, shares: int) -> Plan:
    """A plan for those of the given rows that can do at least one iteration, within a share Ξ/shares of the budget.

    Earlier orders of the same window reduce the share of their CV, and the rest of Ξ limits all new orders together.

    η = η_max, E₁ = (ζ/2)·cD·η_max² per iteration,
    l = min(⌊T·η_max/cD⌋, ⌊(e_bud − e_tx)/E₁⌋, ⌊((share − φ̄)/φ − e_tx)/E₁⌋, l_max).
    """
    problem, rows = observation.problem(), np.asarray(rows)
    energy_j = problem.cpu_capacitance / 2 * problem.cycles * problem.cpu_max_hz**2
    committed = observation.snapshot.committed
    share = np.minimum(
        problem.budget / max(shares, 1) - committed.cost, (problem.budget - committed.total_cost) / max(len(rows), 1)
    )
    limits = _limits(problem, energy_j, share)
    most = np.minimum(np.floor(np.min(list(limits.values()), axis=0)), problem.max_iterations)
    iterations = np.maximum(most, 0).astype(np.int64)
    able, unable = rows[iterations[rows] >= 1], rows[iterations[rows] < 1]
    used_j = iterations[able] * energy_j[able] + problem.tx_energy_j[able]
    ineligible = {int(observation.cv[row]): _first_below_one(limits, row) for row in unable.tolist()}
    return Plan(
        cv=observation.cv[able],
        iterations=iterations[able],
        cpu_hz=problem.cpu_max_hz[able],
        cost=float((used_j * problem.price_per_joule[able] + problem.base_fee[able]).sum()),
        objective=float((problem.weight[able] * iterations[able]).sum()),
        status=_status(observation, able, ineligible),
        ineligible=ineligible,
        max_iterations=dict(zip(observation.cv.tolist(), iterations.tolist(), strict=True)),
    )


def _limits(problem: VeflProblem, energy_j: Floats, share: Floats) -> dict[str, Floats]:
    """Numbers of iterations that time, CPU, energy and budget allow, each on its own; not rounded."""
    spare = share * (1 + 1e-12) - problem.base_fee
    priced = problem.price_per_joule > 0
    affordable_j = np.where(priced, spare / np.where(priced, problem.price_per_joule, 1.0), np.inf)
    affordable_j = np.where(spare >= 0, affordable_j, -np.inf)
    limits = {
        "time": np.where(problem.time_s > 0, np.inf, 0.0),
        "cpu": problem.time_s * problem.cpu_max_hz / problem.cycles,
        "energy": (problem.energy_budget_j - problem.tx_energy_j) / energy_j,
        "budget": (affordable_j - problem.tx_energy_j) / energy_j,
    }
    return {name: limit * (1 + 1e-12) for name, limit in limits.items()}  # tolerance for a limit that is met exactly


def _first_below_one(limits: dict[str, Floats], row: int) -> str:
    """The first constraint that allows less than one iteration: time, then CPU, energy, budget."""
    return next(name for name, limit in limits.items() if limit[row] < 1)


def _status(observation: Observation, able: Ints, ineligible: dict[int, str]) -> str:
    """Status of a plan in equal shares: "equal_share", or why it is empty."""
    if not len(observation.cv):
        return empty_status(observation)
    if len(able):
        return "equal_share"
    return "budget_buys_nobody" if "budget" in ineligible.values() else "nobody_eligible"
