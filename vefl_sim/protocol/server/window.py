"""A window of t_th in a run without rounds: the orders given in it, and their outcomes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vefl_sim.learning.learner import Evaluation
from vefl_sim.protocol.messages import Applied, Decision, OrderOutcome, RoundReport, TrainOrder
from vefl_sim.schemes.observation import Committed
from vefl_sim.schemes.sla import Agreement


@dataclass
class Window:
    """One window of t_th. An order belongs to the window in which it was given, and may end in the next."""

    round: int
    start_ns: int
    in_coverage: int  # number of CVs in coverage at its start
    opened: int  # number of its `round_started` event
    end_ns: int | None = None  # None: still open
    decisions: list[Decision] = field(default_factory=list)
    applied: list[Applied] = field(default_factory=list)
    steps: int = 0
    evaluation: Evaluation | None = None
    cost: dict[int, float] = field(default_factory=dict)  # CV -> worst-case cost of its orders so far
    energy_j: dict[int, float] = field(default_factory=dict)  # CV -> worst-case energy of its orders so far

    def commit(self, order: TrainOrder, agreement: Agreement) -> None:
        """Add the worst-case cost and energy of a new order to those of its CV in this window."""
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

    def report(self) -> RoundReport:
        """The report of the window; to be called when the window is over and all its orders have ended."""
        for decision in self.decisions:
            decision.outcomes.sort(key=lambda outcome: outcome.order.cv)
        assert self.end_ns is not None
        return RoundReport(
            self.round, self.start_ns, self.end_ns, self.in_coverage, self.decisions, self.applied, self.steps,
            self.evaluation,
        )  # fmt: skip
