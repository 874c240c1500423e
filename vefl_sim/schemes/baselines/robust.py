"""Aggregation that resists some wrong updates: coordinate median, trimmed mean, Krum.

Yin et al., Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates (ICML 2018): median, trimmed mean;
Blanchard et al., Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent (NeurIPS 2017): Krum.
"""

from collections.abc import Sequence

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.learner import Model
from vefl_sim.learning.trees import from_vector, vector
from vefl_sim.schemes.fedprox import FedAvg
from vefl_sim.schemes.scheme import BYZANTINE_KEYS, Aggregated, LocalUpdate

_SUM_KEYS = ("aggregation.form", "aggregation.weights_over")


class Median(FedAvg):
    """The orders of FedAvg; each parameter of the next model is the median of those received."""

    label = "median"
    unused_keys: tuple[str, ...] = (*FedAvg.unused_keys, *_SUM_KEYS)

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Model:
        """The median of each parameter; of an even number of updates the mean of the two in the middle."""
        return from_vector(np.median(_matrix(updates), axis=0), model)


class TrimmedMean(Median):
    """Each parameter is the mean of those received, without the smallest and the largest `byzantine_share` of them."""

    label = "trimmed mean"
    unused_keys = tuple(key for key in Median.unused_keys if key not in BYZANTINE_KEYS)

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._share = experiment.aggregation.byzantine_share

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Model:
        """The trimmed mean of each parameter."""
        dropped = int(self._share * len(updates))
        kept = np.sort(_matrix(updates), axis=0)[dropped : len(updates) - dropped]
        return from_vector(kept.mean(axis=0), model)


class Krum(TrimmedMean):
    """The next model is the received one that is nearest to the others: an adversary cannot be far away unnoticed."""

    label = "Krum"

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Aggregated:
        """The update with the least sum of squared distances to its n − f − 2 nearest neighbours.

        f, the number of adversaries, is `byzantine_share` of the n updates; at least one neighbour counts. Of equal
        updates the first is used.
        """
        nearest = max(1, len(updates) - int(self._share * len(updates)) - 2)
        distances = np.sort(squared_distances(_matrix(updates)), axis=1)[:, 1 : 1 + nearest]
        chosen = int(distances.sum(axis=1).argmin())
        return Aggregated(updates[chosen].model, np.eye(len(updates))[chosen])


def _matrix(updates: Sequence[LocalUpdate]) -> Floats:
    """The received models as rows."""
    return np.array([vector(update.model) for update in updates], np.float64)


def squared_distances(rows: Floats) -> Floats:
    """Squared distance of each row from each other row."""
    return np.array([((rows - row) ** 2).sum(axis=1) for row in rows])
