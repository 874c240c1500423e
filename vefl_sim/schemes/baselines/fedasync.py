"""FedAsync: every update is mixed into the model when it arrives, with a smaller weight if it is stale.

Xie, Koyejo and Gupta, Asynchronous Federated Optimization (2019), with its polynomial staleness function.
"""

from collections.abc import Sequence

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.learner import Model
from vefl_sim.learning.trees import weighted_sum
from vefl_sim.schemes.fedbuff import FedBuff
from vefl_sim.schemes.scheme import LocalUpdate, Received

_POWER = 0.5  # a of the staleness function (1 + staleness)^−a


class FedAsync(FedBuff):
    """The orders of AFA-CD; ω ← (1 − w)·ω + w·ω_v with w = rate·(1 + staleness)^−½, for one update at a time."""

    label = "FedAsync"
    default_rate = 0.6
    unused_keys = tuple(
        key for key in (*FedBuff.unused_keys, "aggregation.buffer", "scheme.selected") if key != "learning.proximal_mu"
    )

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self.buffer, self.proximal_mu = 1, experiment.learning.proximal_mu

    def weights(self, received: Received) -> Floats:
        """rate·(1 + staleness)^−½."""
        weights: Floats = np.minimum(1.0, self._rate * (1.0 + received.staleness) ** -_POWER)
        return weights

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Model:
        """Mix the model of the one update into the current model."""
        [update] = updates
        return weighted_sum([model, update.model], [1 - update.weight, update.weight])
