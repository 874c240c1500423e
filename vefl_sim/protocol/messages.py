"""What the actors send each other."""

from dataclasses import dataclass
from typing import Literal

from vefl_sim.learning.learner import Evaluation
from vefl_sim.ledger import Account
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Plan

Loss = Literal["round_ended", "coverage_left", "training_unfinished"]


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
    assured: bool = False  # delivered whatever happens


@dataclass(frozen=True)
class Outcome:
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
class ClosedRound:
    """All there is to know about a round that is over."""

    end_ns: int
    observation: Observation
    plan: Plan
    outcomes: list[Outcome]  # in CV order
    weights: list[float]
    evaluation: Evaluation | None

    @property
    def round(self) -> int:
        """k, from 1."""
        return self.observation.sighting.round
