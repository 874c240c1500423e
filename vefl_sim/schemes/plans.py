"""Plans in the making: from an answer of the optimizer, or without constraints."""

import numpy as np

from vefl_sim.optimize.vefl.problem import VeflPlan, VeflProblem
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Ints, Plan
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
    return "nobody_asks" if observation.sighting.in_coverage else "nobody_in_coverage"


def assured(observation: Observation, rows: Ints) -> Plan:
    """These CVs train l_max iterations as fast as they can and deliver, whatever it costs and however long it takes."""
    limit_hz = column(observation.sighting.agreements, "cpu_max_hz")[rows]
    return Plan(
        cv=observation.cv[rows],
        iterations=np.full(len(rows), observation.terms.max_iterations),
        cpu_hz=limit_hz,
        status="unconstrained" if len(rows) else nobody(observation),
        assured=True,
    )
