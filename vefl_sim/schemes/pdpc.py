"""PDPC, partial device participation: the server selects at most |C_k| CVs by the VEFL sub-problem."""

from vefl_sim.experiment import Experiment
from vefl_sim.learning.aggregation import pdpc_weights
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
            ineligible={cv: limit for (cv, hi), limit in zip(most.items(), problem.limits(), strict=True) if hi == 0},
            max_iterations=most,
        )

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """Every delivered update weighs 1/|C_k|."""
        return pdpc_weights(len(delivered), len(plan.cv), len(observation.cv), normalize=self._normalize)
