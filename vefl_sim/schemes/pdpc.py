"""The schemes of the paper, which solve the VEFL sub-problem.

PDPC, partial device participation: the server selects at most |C_k| CVs. FDPC, full device participation: every
eligible CV trains; updates are weighted by sojourn bound and data size.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import Unused
from vefl_sim.optimize.vefl.problem import solve
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.planning import plan_from_solution, unconstrained_plan
from vefl_sim.schemes.scheme import BYZANTINE_KEYS, KEYS_WITHOUT_ROUNDS, Plan, Scheme
from vefl_sim.schemes.weights import (
    fdpc_weights,
    pdpc_weights,
    shares_over,
    theorem2_sum,
    unused_if_delivered,
    unused_if_normalized,
)


class Pdpc(Scheme):
    """Plans by (iterPlusCpuFreqPD), aggregates by (aggregationRulePartialNORep) with equal p_v = 1/V.

    Without constraints the CVs with the largest Θ_v are selected.
    """

    label = "PDPC"
    selects = True
    unused_keys: tuple[str, ...] = (
        *("aggregation.sojourn_weight", "aggregation.weights_over"),
        *(*KEYS_WITHOUT_ROUNDS, *BYZANTINE_KEYS),
    )
    unused_when = staticmethod(unused_if_normalized)
    wall_s_per_s = 1 / 70

    def plan(self, observation: Observation) -> Plan:
        """Solve the VEFL sub-problem."""
        vefl, scheme = self._experiment.vefl, self._experiment.scheme
        problem = observation.at_most(vefl.budget, scheme.selected).problem()
        if scheme.constrained:
            return plan_from_solution(observation, problem, solve(problem, vefl.method))
        best = np.argsort(-problem.weight, kind="stable")[: problem.max_selected]
        return unconstrained_plan(observation, np.sort(best))

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """(aggregationRulePartialNORep) with p_v = 1/V and q_v = (number ordered)/V: 1/((number ordered)·p_suc,v)."""
        rule = self._experiment.aggregation
        p_suc = observation.p_suc_of(delivered, rule.p_suc)
        return pdpc_weights(p_suc, len(plan.cv), len(observation.cv), normalize=rule.normalize)

    def theorem2_sum(self, observation: Observation, plan: Plan) -> float | None:
        """Σ p_v/(q_v·p_suc,v) over all CVs in coverage (theorem2)."""
        return theorem2_sum(self, observation, plan, self._experiment.aggregation, observation.cv)


class Fdpc(Scheme):
    """The VEFL sub-problem without selection, weighted by p_v of (p_V_Mobility); aggregate by (aggregationRule).

    CVs that cannot train even one iteration, or that the budget does not suffice for, get no order; p_v is renormalized
    over the others, unless `aggregation.weights_over` is set otherwise.
    """

    label = "FDPC"
    unused_keys = ("vefl.sojourn_weight", "vefl.upload_share", *KEYS_WITHOUT_ROUNDS, *BYZANTINE_KEYS)
    unused_environment = ("scheme.selected",)

    @staticmethod
    def unused_when(experiment: Experiment) -> Iterator[Unused]:
        """Yield the keys without effect because the applied weights sum to one."""
        rule = experiment.aggregation
        yield from unused_if_normalized(experiment)
        if not rule.normalize and rule.p_suc == "realized":
            yield from unused_if_delivered(rule.weights_over or "ordered")

    def plan(self, observation: Observation) -> Plan:
        """Solve the VEFL sub-problem for all CVs in coverage."""
        vefl, rule = self._experiment.vefl, self._experiment.aggregation
        if not self._experiment.scheme.constrained:
            return unconstrained_plan(observation, np.arange(len(observation.cv)))
        problem = observation.at_most(vefl.budget).problem(rule.sojourn_weight, everybody=True)
        return replace(plan_from_solution(observation, problem, solve(problem, vefl.method)), limited=False)

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """p_v/p_suc,v of each delivered update."""
        rule = self._experiment.aggregation
        importance = observation.importance(rule.sojourn_weight)
        p = shares_over(rule.weights_over or "ordered", importance, observation, plan, delivered)
        return fdpc_weights(p, observation.p_suc_of(delivered, rule.p_suc), normalize=rule.normalize)

    def theorem2_sum(self, observation: Observation, plan: Plan) -> float | None:
        """Σ p_v/p_suc,v, as q_v = 1, over the ordered CVs (theorem2); p_v of the others is 0."""
        return theorem2_sum(self, observation, plan, self._experiment.aggregation, plan.cv)
