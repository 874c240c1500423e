"""PDPC, partial device participation: the server selects at most |C_k| CVs by solving the VEFL sub-problem."""

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.optimize.vefl.problem import solve
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.planning import plan_from_solution, unconstrained_plan
from vefl_sim.schemes.scheme import BYZANTINE_KEYS, KEYS_WITHOUT_ROUNDS, Plan, Scheme
from vefl_sim.schemes.weights import pdpc_weights, theorem2_sum, unused_if_normalized


class Pdpc(Scheme):
    """Plans by (iterPlusCpuFreqPD), aggregates by (aggregationRulePartialNORep) with equal p_v = 1/V.

    Without constraints the CVs with the largest Θ_v are selected.
    """

    label = "PDPC"
    selects = True
    unused_keys: tuple[str, ...] = (
        "aggregation.sojourn_weight",
        "aggregation.weights_over",
        *KEYS_WITHOUT_ROUNDS,
        *BYZANTINE_KEYS,
    )
    unused_when = staticmethod(unused_if_normalized)
    wall_s_per_s = 1 / 70

    def __init__(self, experiment: Experiment) -> None:
        self.proximal_mu = experiment.learning.proximal_mu
        self._method, self._constrained = experiment.vefl.method, experiment.scheme.constrained
        self._aggregation = experiment.aggregation
        self._budget, self._selected = experiment.vefl.budget, experiment.scheme.selected

    def plan(self, observation: Observation) -> Plan:
        """Solve the VEFL sub-problem."""
        problem = observation.at_most(self._budget, self._selected).problem()
        if self._constrained:
            return plan_from_solution(observation, problem, solve(problem, self._method))
        best = np.argsort(-problem.weight, kind="stable")[: problem.max_selected]
        return unconstrained_plan(observation, np.sort(best))

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """(aggregationRulePartialNORep) with p_v = 1/V and q_v = (number ordered)/V: 1/((number ordered)·p_suc,v)."""
        p_suc = observation.p_suc_of(delivered, self._aggregation.p_suc)
        return pdpc_weights(p_suc, len(plan.cv), len(observation.cv), normalize=self._aggregation.normalize)

    def theorem2_sum(self, observation: Observation, plan: Plan) -> float | None:
        """Σ p_v/(q_v·p_suc,v) over all CVs in coverage (theorem2)."""
        return theorem2_sum(self, observation, plan, self._aggregation, observation.cv)
