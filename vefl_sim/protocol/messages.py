"""What the actors send each other."""

from dataclasses import dataclass
from typing import Literal

from vefl_sim.learning.learner import Evaluation
from vefl_sim.protocol.ledger import Account
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Plan

Loss = Literal["round_ended", "coverage_left", "training_unfinished", "expired"]


@dataclass(frozen=True)
class TrainOrder:
    """Server to CV: train this model so many iterations at that frequency, and send it back."""

    cv: int
    round: int
    iterations: int  # l
    cpu_hz: float  # η
    train_ns: int  # t_cmp
    compute_j: float  # e_cmp
    payload_bits: int  # S
    earliest_slot: int  # τ_v: from here on the gNB serves it
    deadline_slot: int  # end of the sojourn bound or of the round, as a slot
    worst_j: float  # e_cmp + e_tx, worst case
    bypass_ns: int | None = None  # delivered whatever happens, so long after the order at the latest
    ordered_ns: int = 0
    samples: int = 0  # D
    number: int = 0  # tells the orders of a CV apart; decides the order of its mini-batches
    version: int | None = None  # of the model it trains, where versions are counted: without rounds


@dataclass(frozen=True)
class OrderOutcome:
    """CV to server: how the order ended. Nothing is trained yet: that happens when it is aggregated."""

    order: TrainOrder
    account: Account
    lost: Loss | None  # None: delivered
    tx_slots: int
    end_ns: int  # when it was received or lost
    event: int  # event that ended it

    @property
    def delivered_fraction(self) -> float:
        """p_suc = 1 − Q/S (ProbSuc)."""
        if self.lost is None:
            return 1.0
        return self.account.bits_drained / self.order.payload_bits

    @property
    def worst_cost(self) -> float:
        """ξ̂, what the plan counted with."""
        return self.account.price_per_joule * self.order.worst_j + self.account.base_fee


@dataclass(frozen=True)
class Decision:
    """What the server saw and planned at one instant, and what became of it."""

    observation: Observation
    plan: Plan
    outcomes: list[OrderOutcome]  # in CV order, when all are in


@dataclass(frozen=True)
class Applied:
    """An update that became part of the model."""

    weight: float
    staleness: int = 0  # steps of the server since the model that it started from


@dataclass(frozen=True)
class RoundReport:
    """All there is to know about a round that is over, or about a window of t_th where there are no rounds."""

    round: int  # k, from 1
    start_ns: int
    end_ns: int
    in_coverage: int  # CVs, at its start
    decisions: list[Decision]  # the first is that of its start
    applied: list[Applied]
    steps: int  # of the server
    evaluation: Evaluation | None
    theorem2_sum: float | None = None  # Σ p_v/(q_v·p_suc,v), where the scheme aggregates by such weights

    @property
    def outcomes(self) -> list[OrderOutcome]:
        """Of all its orders."""
        return [outcome for decision in self.decisions for outcome in decision.outcomes]

    @property
    def plan(self) -> Plan:
        """That of its start."""
        return self.decisions[0].plan

    @property
    def status(self) -> str:
        """Of the first plan that ordered somebody, else of that of its start."""
        return next((d.plan.status for d in self.decisions if len(d.plan.cv)), self.plan.status)

    @property
    def constrained(self) -> list[Decision]:
        """The decisions that constraints bind: those whose updates are not delivered whatever happens."""
        return [decision for decision in self.decisions if not decision.plan.bypasses_network]

    @property
    def ineligible(self) -> dict[int, str]:
        """CVs that could not be ordered at its start, nor were later in it; and what kept them from it."""
        ordered = {outcome.order.cv for outcome in self.outcomes}
        return {cv: limit for cv, limit in self.plan.ineligible.items() if cv not in ordered}
