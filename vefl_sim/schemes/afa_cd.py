"""AFA-CD: anarchic averaging across devices. CVs train whenever they like; the server averages what it has.

Yang et al., Anarchic Federated Learning (ICML 2022). A CV takes its own number of steps and sends its mean gradient,
(start − end)/(δ·steps); the server steps against the mean of a full buffer, stale or not. A CV takes one step per
iteration, or ⌈D/batch⌉ with mini-batches of `learning.batch_size`.
"""

import numpy as np

from vefl_sim.experiment import Experiment
from vefl_sim.schemes.asynchronous import Received
from vefl_sim.schemes.equal_share import everybody
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Floats, Ints, Plan


class AfaCd:
    """Orders as those of FedProx, one CV at a time; mean gradients."""

    proximal_mu = 0.0
    default_rate = 0.2  # docs/schemes.md has the search

    def __init__(self, experiment: Experiment) -> None:
        self.buffer = experiment.aggregation.buffer or experiment.scheme.selected
        self._rate = experiment.aggregation.server_rate or self.default_rate
        self._constrained, self._learning_rate = experiment.scheme.constrained, experiment.learning.learning_rate
        self._batch_size = experiment.learning.batch_size

    def plan(self, observation: Observation) -> Plan:
        """Everybody who asks, with what is left of a share Ξ/V in this window."""
        return everybody(observation, self._constrained)

    def weights(self, received: Received) -> Floats:
        """Of a difference of models, so that it becomes a mean gradient: 1/(δ·steps), times the server's rate over m.

        `learning.iterations_per_step` does not matter: the local steps still add up to δ·l.
        """
        steps = received.iterations * self._steps_per_iteration(received.samples)
        return self._rate / (len(received.cv) * self._learning_rate * steps.astype(np.float64))

    def _steps_per_iteration(self, samples: Ints) -> Ints:
        """Mini-batches in a pass over the samples, the last one maybe smaller; 1 without `learning.batch_size`."""
        return np.ones_like(samples) if self._batch_size is None else -(-samples // self._batch_size)
