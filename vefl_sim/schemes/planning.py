"""Plans in the making: from an answer of the optimizer, in equal shares of the budget, or without constraints."""

from dataclasses import replace

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.optimize.vefl.problem import VeflPlan, VeflProblem
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Plan
from vefl_sim.schemes.sla import column


def planned(observation: Observation, problem: VeflProblem, solution: VeflPlan) -> Plan:
    """The orders of a solved VEFL sub-problem, and why some CVs could not get one."""
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
        ineligible=unable(observation, problem),
        max_iterations=most,
    )


def unable(observation: Observation, problem: VeflProblem) -> dict[int, str]:
    """The CVs that cannot do a single iteration, and what keeps them from it."""
    limits = zip(observation.cv.tolist(), problem.most.tolist(), problem.limits(), strict=True)
    return {cv: limit for cv, most, limit in limits if most == 0}


def nobody(observation: Observation) -> str:
    """The status of a plan for an empty observation."""
    return "nobody_asks" if observation.snapshot.in_coverage else "nobody_in_coverage"


def bypasses_network(observation: Observation, rows: Ints) -> Plan:
    """These CVs train l_max iterations as fast as they can and deliver, whatever it costs and however long it takes."""
    limit_hz = column(observation.snapshot.agreements, "cpu_max_hz")[rows]
    return Plan(
        cv=observation.cv[rows],
        iterations=np.full(len(rows), observation.constants.max_iterations),
        cpu_hz=limit_hz,
        status="unconstrained" if len(rows) else nobody(observation),
        bypasses_network=True,
    )


def everybody(observation: Observation, constrained: bool) -> Plan:
    """All CVs of the observation, with a share Ξ/V each; or without constraints."""
    rows = np.arange(len(observation.cv))
    if not constrained:
        return bypasses_network(observation, rows)
    return replace(equal_share(observation, rows, shares=observation.snapshot.in_coverage), limited=False)


def equal_share(observation: Observation, rows: Ints, shares: int) -> Plan:
    """Orders for those of the given rows that can do at least one iteration, with a share Ξ/shares of the money each.

    What they have committed in this round already counts, and nobody gets what the others have taken.

    η = η_max, E₁ = (ζ/2)·cD·η_max² per iteration,
    l = min(⌊T·η_max/cD⌋, ⌊(e_bud − e_tx)/E₁⌋, ⌊((share − φ̄)/φ − e_tx)/E₁⌋, l_max).
    """
    problem, rows = observation.problem(), np.asarray(rows)
    energy_j = problem.cpu_capacitance / 2 * problem.cycles * problem.cpu_max_hz**2
    taken = observation.snapshot.committed
    share = np.minimum(
        problem.budget / max(shares, 1) - taken.cost, (problem.budget - taken.total_cost) / max(len(rows), 1)
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
    """How many iterations time, energy and money allow, each alone; not rounded."""
    spare = share * (1 + 1e-12) - problem.base_fee
    priced = problem.price_per_joule > 0
    affordable_j = np.where(priced, spare / np.where(priced, problem.price_per_joule, 1.0), np.inf)
    affordable_j = np.where(spare >= 0, affordable_j, -np.inf)
    limits = {
        "time": problem.time_s * problem.cpu_max_hz / problem.cycles,
        "energy": (problem.energy_budget_j - problem.tx_energy_j) / energy_j,
        "budget": (affordable_j - problem.tx_energy_j) / energy_j,
    }
    return {name: limit * (1 + 1e-12) for name, limit in limits.items()}  # a limit met exactly is met


def _first_below_one(limits: dict[str, Floats], row: int) -> str:
    """What would have to change first; money only where time and energy would do."""
    return next(name for name, limit in limits.items() if limit[row] < 1)


def _status(observation: Observation, able: Ints, ineligible: dict[int, str]) -> str:
    if not len(observation.cv):
        return nobody(observation)
    if len(able):
        return "equal_share"
    return "budget_buys_nobody" if "budget" in ineligible.values() else "nobody_eligible"
