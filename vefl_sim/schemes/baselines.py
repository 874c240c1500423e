"""Schemes of the field with which those of the paper are compared. Their orders are those of FedProx or FedAvg.

- FedNova, normalized averaging, so that CVs that take more steps do not pull the model towards their own optimum: Wang
  et al., Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization (NeurIPS 2020).
- FedAdam and FedYogi, where the server takes the mean change of the models as a gradient, and follows it with an
  optimizer: Reddi et al., Adaptive Federated Optimization (ICLR 2021). optax corrects the moments for their start, as
  Adam was published; the algorithm printed in that paper does not.
- SCAFFOLD, where control variates correct the local steps of each CV for the difference between its data and those of
  all: Karimireddy et al., SCAFFOLD: Stochastic Controlled Averaging for Federated Learning (ICML 2020), option II.
- FedDyn, where a linear term, learnt for each CV, lets its own optimum agree with that of all: Acar et al., Federated
  Learning Based on Dynamic Regularization (ICLR 2021).
- Aggregation that resists some wrong updates. Coordinate median and trimmed mean: Yin et al., Byzantine-Robust
  Distributed Learning: Towards Optimal Statistical Rates (ICML 2018). Krum: Blanchard et al., Machine Learning with
  Adversaries: Byzantine Tolerant Gradient Descent (NeurIPS 2017).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.experiment import Experiment, LearningTable
from vefl_sim.learning.learner import Local, Model
from vefl_sim.learning.trees import (
    from_vector,
    mean,
    minus,
    parameters_only,
    plus,
    split,
    times,
    vector,
    weighted_sum,
    zeros,
)
from vefl_sim.schemes.asynchronous import require_sgd, step_sizes
from vefl_sim.schemes.fedprox import FedAvg, FedProx
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import BYZANTINE_KEYS, SUM_KEYS, Aggregated, LocalUpdate, Plan


class FedNova(FedProx):
    """The orders of FedProx; ω ← ω + τ_eff·Σ p_v·(ω_v − ω)/‖a_v‖₁ with τ_eff = Σ p_v·‖a_v‖₁, p_v = D_v/Σ D.

    ‖a_v‖₁ is the sum of the factors with which a CV's gradients enter its update: its number of steps τ, corrected for
    momentum and for the proximal term.
    """

    label = "FedNova"
    unused_keys = (*FedProx.unused_keys, *SUM_KEYS)

    @staticmethod
    def contradictions(experiment: Experiment) -> Iterator[str]:
        """Yield a sentence if the factors of the gradients are not known."""
        yield from require_sgd(experiment)
        learning = experiment.learning
        if learning.momentum and learning.proximal_mu:
            yield (
                'scheme.kind = "fednova" is defined with momentum or with a proximal term, not with both: set '
                "learning.proximal_mu = 0, or remove learning.momentum."
            )

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """τ_eff·p_v/‖a_v‖₁ of each delivered update."""
        share = super().aggregate(observation, plan, delivered)
        iterations = plan.iterations[np.searchsorted(plan.cv, delivered)]
        samples = observation.snapshot.samples[np.searchsorted(observation.cv, delivered)]
        norm = gradient_norms(self._experiment.learning, iterations, samples)
        weights: Floats = (share * norm).sum() * share / norm
        return weights


def gradient_norms(learning: LearningTable, iterations: Ints, samples: Ints) -> Floats:
    """‖a_v‖₁ of τ steps: τ; (τ − m·(1 − m^τ)/(1 − m))/(1 − m) with momentum m; (1 − (1 − δμ)^τ)/(δμ) with μ."""
    steps = step_sizes(learning, iterations, samples) / learning.learning_rate
    momentum, shrink = learning.momentum, learning.learning_rate * learning.proximal_mu
    if momentum:
        return (steps - momentum * (1 - momentum**steps) / (1 - momentum)) / (1 - momentum)
    if shrink == 0:
        return steps
    merged = learning.iterations_per_step  # n iterations in one step of n·δ; the last step may be smaller
    whole, rest = steps // merged, steps % merged
    return (1 - (1 - merged * shrink) ** whole * (1 - rest * shrink)) / shrink


_SERVER_RATE = 0.01  # η
_OPTIONS = {"b1": 0.9, "b2": 0.99, "eps": 1e-3}  # β₁, β₂ and τ of the paper, which finds τ = 1e-3 good for most tasks


class FedAdam(FedAvg):
    """The orders and weights of FedAvg; the server's optimizer is Adam of optax."""

    label = "FedAdam"
    unused_keys = tuple(key for key in (*FedAvg.unused_keys, *SUM_KEYS) if key != "aggregation.server_rate")
    optimizer = "scale_by_adam"  # of optax

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._rate = experiment.aggregation.server_rate or _SERVER_RATE
        self.memory: dict[str, Any] = {"optimizer": []}

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Model:
        """One step of the optimizer against −Σ weight·change; statistics (BatchNorm's) are averaged."""
        from vefl_sim.learning.jax_learner import optimizer_step  # imports JAX

        gradient = times(weighted_sum([u.change for u in updates], [u.weight for u in updates]), -1.0)
        model, self.memory["optimizer"] = optimizer_step(
            model, gradient, self.memory["optimizer"], self.optimizer, self._rate, **_OPTIONS
        )
        return model


class FedYogi(FedAdam):
    """FedAdam with Yogi, whose second moment changes more slowly."""

    label = "FedYogi"
    optimizer = "scale_by_yogi"


class Scaffold(FedAvg):
    """The orders of FedAvg; CV v steps along ∇F_v − c_v + c, and sends the changes of its model and of c_v.

    After K steps c_v becomes c_v − c + (ω − ω_v)/(K·δ), and ω moves by the mean change. c is the mean of all c_v. CVs
    come and go, so these are the CVs that have delivered at least once, and a new CV starts with c_v = c: its first
    steps are not corrected. Both are as published if all CVs deliver in the first round. A CV whose update is lost
    keeps its c_v.
    """

    label = "SCAFFOLD"
    models_per_update = 2
    unused_keys = tuple(key for key in (*FedAvg.unused_keys, *SUM_KEYS) if key != "aggregation.server_rate")
    contradictions = staticmethod(require_sgd)

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self.memory: dict[str, Any] = {"variates": {}, "mean": None}  # c_v by CV, and c

    def local(self, cv: int) -> Local:
        """The correction c − c_v of the steps of a CV; a CV that has not delivered yet has none."""
        variates = self.memory["variates"]
        return Local(drift=minus(self.memory["mean"], variates[cv])) if cv in variates else Local()

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Aggregated:
        """ω + rate · mean change; c_v of the CVs that delivered, and c, become those of the next round."""
        variates, c = self.memory["variates"], self.memory["mean"] or zeros(model)
        learning, rate = self._experiment.learning, self._experiment.aggregation.server_rate or 1.0
        for update in updates:
            step_size = step_sizes(learning, np.array([update.iterations]), np.array([update.samples]))[0]
            gradient = weighted_sum([update.change], [-1 / float(step_size)])
            variates[update.cv] = plus(gradient, minus(variates.get(update.cv, c), c))
        self.memory["mean"] = mean([variates[cv] for cv in sorted(variates)])
        stepped = plus(model, mean([update.change for update in updates]), rate)
        statistics = split(mean([update.model for update in updates]))[1]
        return Aggregated({**stepped, **statistics}, np.full(len(updates), rate / len(updates)))


class FedDyn(FedProx):
    """The orders of FedProx; CV v minimises F_v(ω) − ⟨h_v, ω⟩ + (α/2)·‖ω − ω_k‖², where α is `learning.proximal_mu`.

    Then h_v becomes h_v − α·(ω_v − ω_k), and the next model is the mean of the ω_v minus h/α, where h is the mean of
    all h_v; CVs come and go, so these are the CVs that have delivered at least once.
    """

    label = "FedDyn"
    unused_keys = (*FedProx.unused_keys, *SUM_KEYS)

    @staticmethod
    def contradictions(experiment: Experiment) -> Iterator[str]:
        """Yield a sentence if α is zero, by which the scheme divides."""
        if not experiment.learning.proximal_mu:
            yield 'scheme.kind = "feddyn" uses learning.proximal_mu as its α, which must be above 0: raise it.'

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self.memory: dict[str, Any] = {"slopes": {}}  # h_v by CV

    def local(self, cv: int) -> Local:
        """The linear term −⟨h_v, ω⟩."""
        slopes = self.memory["slopes"]
        return Local(slope=times(slopes[cv], -1.0)) if cv in slopes else Local()

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Aggregated:
        """Mean of the received models − h/α."""
        slopes, alpha = self.memory["slopes"], self._experiment.learning.proximal_mu
        for update in updates:
            slopes[update.cv] = plus(slopes.get(update.cv, zeros(model)), update.change, -alpha)
        h = mean([slopes[cv] for cv in sorted(slopes)])
        model = plus(mean([update.model for update in updates]), parameters_only(h), -1 / alpha)
        return Aggregated(model, np.full(len(updates), 1 / len(updates)))


class Median(FedAvg):
    """The orders of FedAvg; each parameter of the next model is the median of those received."""

    label = "median"
    unused_keys: tuple[str, ...] = (*FedAvg.unused_keys, *SUM_KEYS)

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Aggregated:
        """The median of each parameter; of an even number of updates the mean of the two in the middle."""
        return _equally(from_vector(np.median(_matrix(updates), axis=0), model), updates)


class TrimmedMean(Median):
    """Each parameter is the mean of those received, without the smallest and the largest `byzantine_share` of them."""

    label = "trimmed mean"
    unused_keys = tuple(key for key in Median.unused_keys if key not in BYZANTINE_KEYS)

    def _wrong(self, updates: Sequence[LocalUpdate]) -> int:
        """Number of updates that may be wrong; none if the share is less than one of them."""
        return int(
            self._experiment.aggregation.byzantine_share * len(updates) + 1e-9
        )  # 0.29 · 100 is slightly less than 29

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
