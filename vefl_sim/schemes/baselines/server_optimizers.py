"""FedAdam and FedYogi: the server takes the mean change of the models as a gradient, and follows it with an optimizer.

Reddi et al., Adaptive Federated Optimization (ICLR 2021). optax corrects the moments for their start, as Adam was
published; the algorithm printed in that paper does not.
"""

from collections.abc import Sequence
from typing import Any

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import nothing
from vefl_sim.learning.learner import Model
from vefl_sim.learning.trees import times, weighted_sum
from vefl_sim.schemes.fedprox import FedAvg
from vefl_sim.schemes.scheme import SUM_KEYS, LocalUpdate

_RATE, _ADAPTIVITY = 0.01, 1e-3  # η and τ; the paper finds τ = 1e-3 good for most tasks
_DECAYS = {"b1": 0.9, "b2": 0.99}  # β₁ and β₂ of the paper


class FedAdam(FedAvg):
    """The orders and weights of FedAvg; the server's optimizer is Adam of optax."""

    label = "FedAdam"
    unused_keys = tuple(key for key in (*FedAvg.unused_keys, *SUM_KEYS) if key != "aggregation.server_rate")
    unused_when = staticmethod(nothing)
    optimizer = "scale_by_adam"  # of optax

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._rate = experiment.aggregation.server_rate or _RATE
        self.memory: dict[str, Any] = {"optimizer": []}

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Model:
        """One step of the optimizer against −Σ weight·change; statistics (BatchNorm's) are averaged."""
        from vefl_sim.learning.combination import ServerStep

        gradient = times(weighted_sum([u.change for u in updates], [u.weight for u in updates]), -1.0)
        step = ServerStep(self.optimizer, self._rate, {**_DECAYS, "eps": _ADAPTIVITY})
        model, self.memory["optimizer"] = step(model, gradient, self.memory["optimizer"])
        return model


class FedYogi(FedAdam):
    """FedAdam with Yogi, whose second moment changes more slowly."""

    label = "FedYogi"
    optimizer = "scale_by_yogi"
