"""FedNova: normalized averaging, so that CVs that take more steps do not pull the model towards their own optimum.

Wang et al., Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization (NeurIPS 2020).
"""

from collections.abc import Iterator

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.experiment import Experiment, LearningTable
from vefl_sim.experiment.plugins import nothing
from vefl_sim.schemes.asynchronous import step_sizes
from vefl_sim.schemes.fedprox import FedProx
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import SUM_KEYS, Plan


class FedNova(FedProx):
    """The orders of FedProx; ω ← ω + τ_eff·Σ p_v·(ω_v − ω)/‖a_v‖₁ with τ_eff = Σ p_v·‖a_v‖₁, p_v = D_v/Σ D.

    ‖a_v‖₁ is the sum of the factors with which a CV's gradients enter its update: its number of steps τ, corrected for
    momentum and for the proximal term.
    """

    label = "FedNova"
    unused_keys = (*FedProx.unused_keys, *SUM_KEYS)
    unused_when = staticmethod(nothing)

    @staticmethod
    def contradictions(experiment: Experiment) -> Iterator[str]:
        """Yield a sentence if the factors of the gradients are not known."""
        learning = experiment.learning
        if learning.optimizer != "sgd":
            yield (
                'scheme.kind = "fednova" needs to know how gradients add up to an update, which learning.optimizer = '
                f'"{learning.optimizer}" does not tell: use "sgd".'
            )
        if learning.momentum and learning.proximal_mu:
            yield (
                'scheme.kind = "fednova" is defined with momentum or with a proximal term, not with both: set '
                "learning.proximal_mu = 0, or remove learning.momentum."
            )

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._learning = experiment.learning

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """τ_eff·p_v/‖a_v‖₁ of each delivered update."""
        share = super().aggregate(observation, plan, delivered)
        iterations = plan.iterations[np.searchsorted(plan.cv, delivered)]
        samples = observation.snapshot.samples[np.searchsorted(observation.cv, delivered)]
        norm = gradient_norms(self._learning, iterations, samples)
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
