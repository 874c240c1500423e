"""A scheme without rounds of a user's own: what a CV minimises depends on what the scheme remembers."""

from collections.abc import Sequence

import numpy as np

from vefl_sim import Aggregated, Experiment, Local, LocalUpdate, trees
from vefl_sim.schemes.asynchronous import FedBuff


class Anchored(FedBuff):
    """FedBuff in which each CV has a slope, a drift and a μ from its last updates, and the server a momentum."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self.buffer = 3
        self.memory = {"changes": {}, "counts": {}, "momentum": None}

    def local(self, cv: int) -> Local:
        """Nothing for a CV that has not delivered yet; then vectors that differ from order to order."""
        if cv not in self.memory["changes"]:
            return Local()
        change, count = self.memory["changes"][cv], self.memory["counts"][cv]
        if count % 2:
            return Local(slope=trees.times(change, -0.5), proximal_mu=0.01 * count)
        return Local(drift=trees.times(change, 0.1))

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: object) -> Aggregated:
        """The momentum of the weighted changes; notes the change of each CV."""
        for update in updates:
            self.memory["changes"][update.cv] = update.change
            self.memory["counts"][update.cv] = self.memory["counts"].get(update.cv, 0) + 1
        change = trees.weighted_sum([u.change for u in updates], [u.weight for u in updates])
        old = self.memory["momentum"] or trees.zeros(model)
        self.memory["momentum"] = trees.plus(change, old, 0.5)
        return Aggregated(trees.plus(model, self.memory["momentum"]), np.array([u.weight for u in updates]))
