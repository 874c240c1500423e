"""AFA-CD: anarchic averaging across devices. CVs train whenever they like; the server averages what it has.

Yang et al., Anarchic Federated Learning (ICML 2022). A CV takes its own number of steps and sends its mean gradient,
(start − end)/(δ·l); the server steps against the mean of a full buffer, stale or not. In rounds it steps once per round
against the mean of what arrived: so the paper seems to have run it, as its cost and p_suc are those of FedProx.
"""

import numpy as np

from vefl_sim.experiment import Experiment
from vefl_sim.schemes.asynchronous import Received
from vefl_sim.schemes.equal_share import everybody
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Floats, Ints, Plan
from vefl_sim.schemes.shares import shares_over


class AfaCd:
    """Orders as those of FedProx, one CV at a time; mean gradients."""

    proximal_mu = 0.0
    default_rate = 0.2  # docs/schemes.md has the search

    def __init__(self, experiment: Experiment) -> None:
        self.buffer = experiment.aggregation.buffer or experiment.scheme.selected
        self._rate = experiment.aggregation.server_rate or self.default_rate
        self._constrained, self._learning_rate = experiment.scheme.constrained, experiment.learning.learning_rate

    def plan(self, observation: Observation) -> Plan:
        """Everybody who asks, with what is left of a share Ξ/V in this window."""
        return everybody(observation, self._constrained)

    def weights(self, received: Received) -> Floats:
        """Of a difference of models, so that it becomes a mean gradient: 1/(δ·l), times the server's rate over m."""
        count = len(received.cv)
        return self._rate / (count * self._learning_rate * received.iterations.astype(np.float64))


class AfaCdInRounds:
    """The orders of FedProx without a proximal term; one step against the mean gradient at the end of a round."""

    proximal_mu = 0.0

    def __init__(self, experiment: Experiment) -> None:
        self._rate = experiment.aggregation.server_rate or AfaCd.default_rate
        self._constrained, self._learning_rate = experiment.scheme.constrained, experiment.learning.learning_rate
        self._whole = experiment.aggregation.weights_over or "delivered"

    def plan(self, observation: Observation) -> Plan:
        """Everybody, with a share Ξ/V each."""
        return everybody(observation, self._constrained)

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """An equal share of the server's rate each, over δ·l, which makes a difference of models a mean gradient."""
        share = shares_over(self._whole, np.ones(len(observation.cv)), observation, plan, delivered)
        iterations = plan.iterations[np.searchsorted(plan.cv, delivered)].astype(np.float64)
        weights: Floats = self._rate * share / (self._learning_rate * iterations)
        return weights


def afa_cd(experiment: Experiment) -> AfaCd | AfaCdInRounds:
    """AFA-CD without rounds, as published, or in rounds (`scheme.rounds`)."""
    return (AfaCdInRounds if experiment.scheme.rounds else AfaCd)(experiment)
