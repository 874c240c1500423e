"""Aggregation that resists some wrong updates: coordinate median, trimmed mean, Krum.

Yin et al., Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates (ICML 2018): median, trimmed mean;
Blanchard et al., Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent (NeurIPS 2017): Krum.
"""

from collections.abc import Sequence

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import nothing
from vefl_sim.learning.learner import Model
from vefl_sim.learning.trees import from_vector, split, vector
from vefl_sim.schemes.fedprox import FedAvg
from vefl_sim.schemes.scheme import BYZANTINE_KEYS, SUM_KEYS, Aggregated, LocalUpdate


class Median(FedAvg):
    """The orders of FedAvg; each parameter of the next model is the median of those received."""

    label = "median"
    unused_keys: tuple[str, ...] = (*FedAvg.unused_keys, *SUM_KEYS)
    unused_when = staticmethod(nothing)

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Aggregated:
        """The median of each parameter; of an even number of updates the mean of the two in the middle."""
        return _equally(from_vector(np.median(_matrix(updates), axis=0), model), updates)


class TrimmedMean(Median):
    """Each parameter is the mean of those received, without the smallest and the largest `byzantine_share` of them."""

    label = "trimmed mean"
    unused_keys = tuple(key for key in Median.unused_keys if key not in BYZANTINE_KEYS)

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._share = experiment.aggregation.byzantine_share

    def _wrong(self, updates: Sequence[LocalUpdate]) -> int:
        """Number of updates that may be wrong; none if the share is less than one of them."""
        return int(self._share * len(updates) + 1e-9)  # 0.29 · 100 is slightly less than 29

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Aggregated:
        """The trimmed mean of each parameter."""
        dropped = self._wrong(updates)
        kept = np.sort(_matrix(updates), axis=0)[dropped : len(updates) - dropped]
        return _equally(from_vector(kept.mean(axis=0), model), updates)


class Krum(TrimmedMean):
    """The next model is the received one that is nearest to the others: an adversary cannot be far away unnoticed."""

    label = "Krum"

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Aggregated:
        """The update with the least sum of squared distances to its n − f − 2 nearest neighbours.

        f, the number of adversaries, is `byzantine_share` of the n updates; at least one neighbour counts. Of equal
        updates the first is used.
        """
        nearest = max(1, len(updates) - self._wrong(updates) - 2)
        distances = np.sort(squared_distances(_matrix(updates, of_parameters=True)), axis=1)[:, 1 : 1 + nearest]
        chosen = int(distances.sum(axis=1).argmin())
        return Aggregated(updates[chosen].model, np.eye(len(updates))[chosen])


def _equally(model: Model, updates: Sequence[LocalUpdate]) -> Aggregated:
    """The next model; as no single weight belongs to an update, all are reported as equal."""
    return Aggregated(model, np.full(len(updates), 1 / len(updates)))


def _matrix(updates: Sequence[LocalUpdate], *, of_parameters: bool = False) -> Floats:
    """The received models as rows; `of_parameters`: without BatchNorm's statistics, which would dominate distances."""
    models = [split(update.model)[0] if of_parameters else update.model for update in updates]
    return np.array([vector(model) for model in models], np.float64)


def squared_distances(rows: Floats) -> Floats:
    """Squared distance of each row from each other row."""
    return np.array([((rows - row) ** 2).sum(axis=1) for row in rows])
