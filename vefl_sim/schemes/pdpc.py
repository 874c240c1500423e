"""PDPC, partial device participation: the server selects at most |C_k| CVs by the VEFL sub-problem."""

import numpy as np

from vefl_sim.experiment import Experiment
from vefl_sim.learning.aggregation import normalized, weights
from vefl_sim.optimize.vefl import solve
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Floats, Ints, Plan


class Pdpc:
    """Plan by (iterPlusCpuFreqPD), aggregate by (aggregationRulePartialNORep) with equal p_v = 1/V."""

    def __init__(self, experiment: Experiment) -> None:
        self._method = experiment.vefl.method
        self._normalize = experiment.aggregation.normalize

    def plan(self, observation: Observation) -> Plan:
        """Solve the VEFL sub-problem."""
        problem = observation.problem()
        solution = solve(problem, self._method)
        most = dict(zip(observation.cv.tolist(), problem.most.tolist(), strict=True))
        return Plan(
            cv=observation.cv[solution.selected],
            iterations=solution.iterations,
            cpu_hz=solution.cpu_hz,
            cost=solution.cost,
            objective=solution.objective,
            gap=solution.gap,
            status=solution.status,
            ineligible={
                cv: limit
                for (cv, hi), limit in zip(most.items(), problem.limits(), strict=True)
                if hi == 0
            },
            max_iterations=most,
        )

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """p_v/(q_v·p_suc) with q_v = |C_k|/V; a received update has p_suc = 1."""
        cvs = len(observation.cv)
        applied = weights(
            p=np.full(len(delivered), 1 / cvs),
            q=np.full(len(delivered), len(plan.cv) / cvs),
            p_suc=np.ones(len(delivered)),
        )
        return normalized(applied) if self._normalize else applied
