"""FedBuff: buffered asynchronous aggregation of model differences, the stale ones discounted.

Nguyen et al., Federated Learning with Buffered Asynchronous Aggregation (AISTATS 2022), without its secure sums.
"""

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.schemes.afa_cd import AfaCd
from vefl_sim.schemes.scheme import Received


class FedBuff(AfaCd):
    """Orders as those of AFA-CD; whole differences."""

    default_rate = 1.0

    def weights(self, received: Received) -> Floats:
        """Rate over m, over the root of 1 + staleness."""
        weights: Floats = self._rate / len(received.cv) / np.sqrt(1.0 + received.staleness)
        return weights
