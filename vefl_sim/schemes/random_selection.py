"""Random selection: |C_k| CVs drawn uniformly, the choice that the unbiasedness of PDPC's aggregation assumes."""

from dataclasses import replace

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.pdpc import equal_weights
from vefl_sim.schemes.planning import bypasses_network, equal_share, unable
from vefl_sim.schemes.scheme import Plan
from vefl_sim.schemes.weights import theorem2_sum


class RandomSelection:
    """Equal shares of the budget for those who are drawn; aggregated as PDPC."""

    def __init__(self, experiment: Experiment) -> None:
        self.proximal_mu = experiment.learning.proximal_mu
        self._constrained, self._aggregation = experiment.scheme.constrained, experiment.aggregation
        self._streams = Streams(experiment.run.seed)

    def plan(self, observation: Observation) -> Plan:
        """Draw among those who can do an iteration, then ask those whom a share of the money buys one."""
        if not self._constrained:
            return bypasses_network(observation, self._draw(observation, np.arange(len(observation.cv))))
        problem = observation.problem()
        drawn = self._draw(observation, np.flatnonzero(problem.most))
        plan = equal_share(observation, drawn, shares=len(drawn))
        return replace(plan, ineligible=unable(observation, problem) | plan.ineligible)

    def _draw(self, observation: Observation, rows: Ints) -> Ints:
        """Uniform; depends on the round and on how many there are, on nothing else."""
        rng = self._streams.generator("selection", observation.snapshot.round)
        count = min(len(rows), observation.constants.max_selected)
        return np.sort(rng.choice(rows, count, replace=False)) if count else np.empty(0, np.int64)

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """Every delivered update weighs 1/(number ordered), over its p_suc."""
        return equal_weights(observation, plan, delivered, self._aggregation)

    def theorem2_sum(self, observation: Observation, plan: Plan) -> float | None:
        """Σ p_v/(q_v·p_suc,v) over all CVs in coverage (theorem2)."""
        return theorem2_sum(self, observation, plan, self._aggregation, observation.cv)
