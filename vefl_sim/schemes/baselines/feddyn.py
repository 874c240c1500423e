"""FedDyn: a linear term, learnt for each CV, lets its own optimum agree with that of all.

Acar et al., Federated Learning Based on Dynamic Regularization (ICLR 2021).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import nothing
from vefl_sim.learning.learner import Local, Model
from vefl_sim.learning.trees import mean, parameters_only, plus, times, zeros
from vefl_sim.schemes.fedprox import FedProx
from vefl_sim.schemes.scheme import SUM_KEYS, Aggregated, LocalUpdate


class FedDyn(FedProx):
    """The orders of FedProx; CV v minimises F_v(ω) − ⟨h_v, ω⟩ + (α/2)·‖ω − ω_k‖², where α is `learning.proximal_mu`.

    Then h_v becomes h_v − α·(ω_v − ω_k), and the next model is the mean of the ω_v minus h/α, where h is the mean of
    all h_v; CVs come and go, so these are the CVs that have delivered at least once.
    """

    label = "FedDyn"
    unused_keys = (*FedProx.unused_keys, *SUM_KEYS)
    unused_when = staticmethod(nothing)

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
        slopes, alpha = self.memory["slopes"], self.proximal_mu
        for update in updates:
            slopes[update.cv] = plus(slopes.get(update.cv, zeros(model)), update.change, -alpha)
        h = mean([slopes[cv] for cv in sorted(slopes)])
        model = plus(mean([update.model for update in updates]), parameters_only(h), -1 / alpha)
        return Aggregated(model, np.full(len(updates), 1 / len(updates)))
