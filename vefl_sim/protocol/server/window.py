"""A round, or a window of t_th in a run without rounds: the orders given in it, and their outcomes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vefl_sim.protocol.messages import OrderOutcome, RoundReport, TrainOrder
from vefl_sim.schemes.observation import Committed
from vefl_sim.schemes.sla import Agreement


@dataclass
class Window(RoundReport):
    """One round, from its start on. Without rounds, an order belongs to the window in which it was given."""

    opened: int = 0  # number of its `round_started` event
    orders_left: int = 0  # number of its orders that have not ended
    cost: dict[int, float] = field(default_factory=dict)  # CV -> worst-case cost of its orders so far
    energy_j: dict[int, float] = field(default_factory=dict)  # CV -> worst-case energy of its orders so far

    def commit(self, order: TrainOrder, agreement: Agreement) -> None:
        """Add a new order, with its worst-case cost and energy."""
        self.orders_left += 1
        cv, cost = order.cv, agreement.price_per_joule * order.worst_j + agreement.base_fee
        self.cost[cv] = self.cost.get(cv, 0.0) + cost
        self.energy_j[cv] = self.energy_j.get(cv, 0.0) + order.worst_j

    def committed(self, cvs: Sequence[int]) -> Committed:
        """Worst-case cost and energy of the orders of these CVs so far, and the cost of all CVs."""
        cost, energy_j = (
            np.array([counts.get(cv, 0.0) for cv in cvs], np.float64) for counts in (self.cost, self.energy_j)
        )
        return Committed(cost, energy_j, float(sum(self.cost.values())))

    def add(self, outcome: OrderOutcome) -> None:
        """Add the outcome of an order to the decision that gave it; at most one decision is made at an instant."""
        [decision] = (d for d in self.decisions if d.observation.snapshot.time_ns == outcome.order.ordered_ns)
        decision.outcomes.append(outcome)
        self.orders_left -= 1

    def close(self) -> None:
        """Bring the outcomes into the order of the CVs, when all orders have ended."""
        for decision in self.decisions:
            decision.outcomes.sort(key=lambda outcome: outcome.order.cv)
