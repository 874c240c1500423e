"""SCAFFOLD: control variates correct the local steps of each CV for the difference between its data and those of all.

Karimireddy et al., SCAFFOLD: Stochastic Controlled Averaging for Federated Learning (ICML 2020), option II.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import nothing
from vefl_sim.learning.learner import Local, Model
from vefl_sim.learning.trees import mean, minus, plus, split, weighted_sum, zeros
from vefl_sim.schemes.asynchronous import step_sizes
from vefl_sim.schemes.fedprox import FedAvg
from vefl_sim.schemes.scheme import SUM_KEYS, Aggregated, LocalUpdate


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
    unused_when = staticmethod(nothing)

    @staticmethod
    def contradictions(experiment: Experiment) -> Iterator[str]:
        """Yield a sentence for settings with which control variates are not defined."""
        if experiment.learning.optimizer != "sgd":
            yield (
                'scheme.kind = "scaffold" divides an update by the sum of its step sizes, which learning.optimizer = '
                f'"{experiment.learning.optimizer}" does not define: use "sgd".'
            )

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._learning, self._rate = experiment.learning, experiment.aggregation.server_rate or 1.0
        self.memory: dict[str, Any] = {"variates": {}, "mean": None}  # c_v by CV, and c

    def local(self, cv: int) -> Local:
        """The correction c − c_v of the steps of a CV; a CV that has not delivered yet has none."""
        variates = self.memory["variates"]
        return Local(drift=minus(self.memory["mean"], variates[cv])) if cv in variates else Local()

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Aggregated:
        """ω + rate · mean change; c_v of the CVs that delivered, and c, become those of the next round."""
        variates, c = self.memory["variates"], self.memory["mean"] or zeros(model)
        for update in updates:
            step_size = step_sizes(self._learning, np.array([update.iterations]), np.array([update.samples]))[0]
            gradient = weighted_sum([update.change], [-1 / float(step_size)])
            variates[update.cv] = plus(gradient, minus(variates.get(update.cv, c), c))
        self.memory["mean"] = mean([variates[cv] for cv in sorted(variates)])
        stepped = plus(model, mean([update.change for update in updates]), self._rate)
        statistics = split(mean([update.model for update in updates]))[1]
        return Aggregated({**stepped, **statistics}, np.full(len(updates), self._rate / len(updates)))
