"""How the baselines plan under constraints: the budget in equal shares, full speed, as many iterations as that buys."""

import numpy as np

from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Ints, Plan


def equal_share(observation: Observation, rows: Ints, shares: int) -> Plan:
    """Orders for those of the given rows that can do at least one iteration, with a share Ξ/shares of the money each.

    η = η_max, E₁ = (ζ/2)·cD·η_max² per iteration,
    l = min(⌊T·η_max/cD⌋, ⌊(e_bud − e_tx)/E₁⌋, ⌊((share − φ̄)/φ − e_tx)/E₁⌋, l_max).
    """
    problem = observation.problem()
    energy_j = problem.cpu_capacitance / 2 * problem.cycles * problem.cpu_max_hz**2
    with np.errstate(divide="ignore"):  # energy may be free
        affordable_j = (problem.budget / max(shares, 1) - problem.base_fee) / problem.price_per_joule
    affordable_j = np.where(problem.base_fee <= problem.budget / max(shares, 1), affordable_j, -np.inf)
    limits = {
        "time": problem.time_s * problem.cpu_max_hz / problem.cycles,
        "energy": (problem.energy_budget_j - problem.tx_energy_j) / energy_j,
        "budget": (affordable_j - problem.tx_energy_j) / energy_j,
    }
    most = np.minimum(np.floor(np.min(list(limits.values()), axis=0) * (1 + 1e-12)), problem.max_iterations)
    iterations = np.maximum(most, 0).astype(np.int64)
    binding = np.array(list(limits))[np.argmin(list(limits.values()), axis=0)]
    rows = np.asarray(rows)
    able, unable = rows[iterations[rows] >= 1], rows[iterations[rows] < 1]
    used_j = iterations[able] * energy_j[able] + problem.tx_energy_j[able]
    return Plan(
        cv=observation.cv[able],
        iterations=iterations[able],
        cpu_hz=problem.cpu_max_hz[able],
        cost=float((used_j * problem.price_per_joule[able] + problem.base_fee[able]).sum()),
        objective=float((problem.weight[able] * iterations[able]).sum()),
        status=_status(observation, able),
        ineligible=dict(zip(observation.cv[unable].tolist(), binding[unable].tolist(), strict=True)),
        max_iterations=dict(zip(observation.cv.tolist(), iterations.tolist(), strict=True)),
    )


def _status(observation: Observation, able: Ints) -> str:
    if not len(observation.cv):
        return "nobody_in_coverage"
    return "equal_share" if len(able) else "nobody_eligible"
