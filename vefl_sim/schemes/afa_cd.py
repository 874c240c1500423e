"""AFA-CD: anarchic averaging across devices. CVs train whenever they like; the server averages what it has.

Yang et al., Anarchic Federated Learning (ICML 2022). A CV takes its own number of steps and sends its mean gradient,
(start − end)/(δ·steps); the server steps against the mean of a full buffer, stale or not. In rounds it steps once per
round against the mean of what arrived: so the paper seems to have run it, as its cost and p_suc are those of FedProx.
"""

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.learning_tables import LearningTable
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.planning import everybody
from vefl_sim.schemes.scheme import Plan, Received
from vefl_sim.schemes.weights import shares_over


class AfaCd:
    """Orders as those of FedProx, one CV at a time; mean gradients."""

    proximal_mu = 0.0
    default_rate = 0.2  # docs/schemes.md has the search

    def __init__(self, experiment: Experiment) -> None:
        self.buffer = experiment.aggregation.buffer or experiment.scheme.selected
        self._rate = experiment.aggregation.server_rate or self.default_rate
        self._constrained, self._learning = experiment.scheme.constrained, experiment.learning

    def plan(self, observation: Observation) -> Plan:
        """Everybody who asks, with what is left of a share Ξ/V in this window."""
        return everybody(observation, self._constrained)

    def weights(self, received: Received) -> Floats:
        """Of a difference of models, so that it becomes a mean gradient, times the server's rate over m."""
        travelled = step_sizes(self._learning, received.iterations, received.samples)
        return self._rate / (len(received.cv) * travelled)


class AfaCdInRounds:
    """The orders of FedProx without a proximal term; one step against the mean gradient at the end of a round."""

    proximal_mu = 0.0

    def __init__(self, experiment: Experiment) -> None:
        self._rate = experiment.aggregation.server_rate or AfaCd.default_rate
        self._constrained, self._learning = experiment.scheme.constrained, experiment.learning
        self._whole = experiment.aggregation.weights_over or "delivered"

    def plan(self, observation: Observation) -> Plan:
        """Everybody, with a share Ξ/V each."""
        return everybody(observation, self._constrained)

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """Equal shares of a step of the server's rate against the mean gradients."""
        share = shares_over(self._whole, np.ones(len(observation.cv)), observation, plan, delivered)
        iterations = plan.iterations[np.searchsorted(plan.cv, delivered)]
        samples = observation.snapshot.samples[np.searchsorted(observation.cv, delivered)]
        return self._rate * share / step_sizes(self._learning, iterations, samples)


def afa_cd(experiment: Experiment) -> AfaCd | AfaCdInRounds:
    """AFA-CD without rounds, as published, or in rounds (`scheme.rounds`)."""
    return (AfaCdInRounds if experiment.scheme.rounds else AfaCd)(experiment)


def step_sizes(learning: LearningTable, iterations: Ints, samples: Ints) -> Floats:
    """δ·steps, by which a difference of models is divided to become a mean gradient.

    A CV takes one step per iteration, or ⌈D/batch⌉ with mini-batches. `learning.iterations_per_step` does not matter:
    the local steps still add up to δ·l.
    """
    batch = learning.batch_size
    steps = iterations if batch is None else iterations * -(-samples // batch)
    return learning.learning_rate * steps.astype(np.float64)
