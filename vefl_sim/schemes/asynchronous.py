"""Schemes without rounds: CVs train whenever they can, and the server aggregates a full buffer of updates.

AFA-CD, anarchic federated averaging, cross-device: Yang et al., Anarchic Federated Learning (ICML 2022). A CV takes its
own number of local steps and sends its mean gradient, (start − end)/(δ·steps); the server steps against the mean of a
full buffer, whatever the staleness. With rounds it steps once per round against the mean of the delivered updates: the
paper seems to use this form, as its cost and p_suc of AFA-CD are those of FedProx.

FedBuff, buffered aggregation of model differences, with smaller weights for stale ones: Nguyen et al., Federated
Learning with Buffered Asynchronous Aggregation (AISTATS 2022), without its secure aggregation.

FedAsync, which mixes every update into the model when it arrives, with a smaller weight if it is stale: Xie, Koyejo and
Gupta, Asynchronous Federated Optimization (2019), with its polynomial staleness function.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.experiment import Experiment, LearningTable
from vefl_sim.experiment.plugins import Unused, nothing
from vefl_sim.learning.learner import Model
from vefl_sim.learning.trees import weighted_sum
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.planning import equal_shares_for_all
from vefl_sim.schemes.scheme import (
    BYZANTINE_KEYS,
    PROBLEM_KEYS,
    RULE_KEYS,
    SUM_KEYS,
    LocalUpdate,
    Plan,
    Received,
    Scheme,
)
from vefl_sim.schemes.weights import shares_over


class AfaCd(Scheme):
    """AFA-CD without rounds, as published, or with rounds (`scheme.rounds`): the orders of FedProx, no proximal term.

    Without rounds, CVs get an order when they request one, and `weights` is asked for the updates of a full buffer.
    With rounds there is no buffer, and `aggregate` is asked for those of a round. Updates count as mean gradients.
    """

    label = "AFA-CD"
    proximal_mu: float | None = 0.0
    default_rate = 0.2  # from the search described in docs/schemes.md
    unused_keys: tuple[str, ...] = (*RULE_KEYS, *PROBLEM_KEYS, *BYZANTINE_KEYS, "learning.proximal_mu")
    unused_without_rounds = (*SUM_KEYS, "server.early_close")

    @classmethod
    def unused_when(cls, experiment: Experiment) -> Iterator[Unused]:
        """Yield the keys that only the other form of the scheme uses, with rounds or without."""
        if experiment.scheme.rounds:
            keys = ("aggregation.form", "aggregation.buffer", "server.retry_s")
            yield f'scheme.kind = "{experiment.scheme.kind}" in rounds', keys
        else:
            yield f'scheme.kind = "{experiment.scheme.kind}"', cls.unused_without_rounds

    @staticmethod
    def contradictions(experiment: Experiment) -> Iterator[str]:
        """Yield a sentence if mean gradients are not defined."""
        yield from require_sgd(experiment)
        if experiment.learning.momentum:
            yield (
                f'scheme.kind = "{experiment.scheme.kind}" divides an update by the sum of its step sizes, which gives '
                "no mean gradient with learning.momentum: remove it."
            )

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        rule = experiment.aggregation
        self.buffer = None if experiment.scheme.rounds else rule.buffer or experiment.scheme.selected
        self._rate = rule.server_rate or self.default_rate

    def plan(self, observation: Observation) -> Plan:
        """Order every eligible CV of the observation, within the rest of its share Ξ/V of the budget."""
        return equal_shares_for_all(
            observation.at_most(self._experiment.vefl.budget), self._experiment.scheme.constrained
        )

    def weights(self, received: Received) -> Floats:
        """rate/(m·δ·steps): makes m model differences mean gradients, times the server's learning rate over m."""
        step_size = step_sizes(self._experiment.learning, received.iterations, received.samples)
        return self._rate / (len(received.cv) * step_size)

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """Turn the model differences into mean gradients, with equal shares of the server's learning rate."""
        whole = self._experiment.aggregation.weights_over or "delivered"
        share = shares_over(whole, np.ones(len(observation.cv)), observation, plan, delivered)
        iterations = plan.iterations[np.searchsorted(plan.cv, delivered)]
        samples = observation.snapshot.samples[np.searchsorted(observation.cv, delivered)]
        return self._rate * share / step_sizes(self._experiment.learning, iterations, samples)


def require_sgd(experiment: Experiment) -> Iterator[str]:
    """Yield a sentence if the step sizes of local training are not defined, by whose sum a scheme divides updates."""
    if experiment.learning.optimizer != "sgd":
        yield (
            f'scheme.kind = "{experiment.scheme.kind}" divides an update by the sum of its step sizes, which '
            f'learning.optimizer = "{experiment.learning.optimizer}" does not define: use "sgd".'
        )


def step_sizes(learning: LearningTable, iterations: Ints, samples: Ints) -> Floats:
    """δ·steps of each CV; a model difference divided by it is a mean gradient.

    A CV takes one step per iteration, or ⌈D/batch⌉ with mini-batches. `learning.iterations_per_step` has no effect
    here: the local steps still add up to δ·l.
    """
    batch = learning.batch_size
    steps = iterations if batch is None else iterations * -(-samples // batch)
    return learning.learning_rate * steps.astype(np.float64)


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


_POWER = 0.5  # a of the staleness function (1 + staleness)^−a


class FedAsync(FedBuff):
    """The orders of AFA-CD; ω ← (1 − w)·ω + w·ω_v with w = rate·(1 + staleness)^−½, for one update at a time."""

    label = "FedAsync"
    proximal_mu = None
    default_rate = 0.6
    unused_keys = tuple(
        key for key in (*FedBuff.unused_keys, "aggregation.buffer", "scheme.selected") if key != "learning.proximal_mu"
    )

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self.buffer = 1

    def weights(self, received: Received) -> Floats:
        """rate·(1 + staleness)^−½."""
        weights: Floats = np.minimum(1.0, self._rate * (1.0 + received.staleness) ** -_POWER)
        return weights

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Model:
        """Mix the model of the one update into the current model."""
        [update] = updates
        return weighted_sum([model, update.model], [1 - update.weight, update.weight])
