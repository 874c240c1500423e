"""Random selection: |C_k| CVs drawn uniformly, the choice that the unbiasedness of PDPC's aggregation assumes."""

import numpy as np

from vefl_sim.experiment import Experiment
from vefl_sim.learning.aggregation import pdpc_weights
from vefl_sim.rng import Streams
from vefl_sim.schemes.equal_share import equal_share
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.plans import assured
from vefl_sim.schemes.scheme import Floats, Ints, Plan


class RandomSelection:
    """Equal shares of the budget for those who are drawn; aggregated as PDPC."""

    def __init__(self, experiment: Experiment) -> None:
        self.proximal_mu = experiment.learning.proximal_mu
        self._constrained, self._aggregation = experiment.scheme.constrained, experiment.aggregation
        self._streams = Streams(experiment.run.seed)

    def plan(self, observation: Observation) -> Plan:
        """Draw, then ask those who can do at least one iteration. The draw depends on the round and V only."""
        rng = self._streams.generator("selection", observation.sighting.round)
        count = min(len(observation.cv), observation.terms.max_selected)
        drawn = np.sort(rng.choice(len(observation.cv), count, replace=False)) if count else np.empty(0, np.int64)
        return equal_share(observation, drawn, shares=count) if self._constrained else assured(observation, drawn)

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """Every delivered update weighs 1/(number ordered), over its p_suc."""
        return pdpc_weights(
            observation.p_suc_of(delivered, self._aggregation.p_suc),
            len(plan.cv),
            len(observation.cv),
            normalize=self._aggregation.normalize,
        )
