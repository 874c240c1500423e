"""FedBuff: buffered asynchronous aggregation of model differences, with smaller weights for stale ones.

Nguyen et al., Federated Learning with Buffered Asynchronous Aggregation (AISTATS 2022), without its secure aggregation.
"""

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import nothing
from vefl_sim.schemes.afa_cd import AfaCd
from vefl_sim.schemes.scheme import Received


class FedBuff(AfaCd):
    """The orders of AFA-CD; updates count as whole model differences, not as mean gradients."""

    label = "FedBuff"
    default_rate = 1.0
    unused_keys = (*AfaCd.unused_keys, *AfaCd.unused_without_rounds, "scheme.rounds")
    unused_when = staticmethod(nothing)
    contradictions = staticmethod(nothing)

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self.buffer = experiment.aggregation.buffer or experiment.scheme.selected

    def weights(self, received: Received) -> Floats:
        """rate/(m·√(1 + staleness)) for each of the m updates."""
        weights: Floats = self._rate / len(received.cv) / np.sqrt(1.0 + received.staleness)
        return weights
