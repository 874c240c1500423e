"""What the actors exchange: orders and their outcomes, decisions of the server, and the report of a round."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from vefl_sim.core.state import NOT_SAVED
from vefl_sim.learning.learner import Evaluation, Start
from vefl_sim.protocol.ledger import Account
from vefl_sim.protocol.trace import Departure
from vefl_sim.schemes.observation import Committed, Observation
from vefl_sim.schemes.scheme import Plan
from vefl_sim.schemes.sla import Agreement

Loss = Departure | Literal["round_ended", "training_unfinished", "expired"]
"""Why an update was lost."""
OVERRUNS = ("upload_slots", "vehicle_energy", "vehicle_cost", "deadline", "round_cost")
"""Limits that a round may exceed although its plan respected them in the worst case; see `RoundReport.overruns`."""
_TOLERANCE = 1e-9  # relative; covers sums in a different order


@dataclass(frozen=True)
class TrainOrder:
    """A training order, from the server to a CV: how long to train, how fast, and when to send the update."""

    cv: int
    round: int
    iterations: int  # l
    cpu_hz: float  # η
    train_ns: int  # t_cmp
    compute_j: float  # e_cmp
    payload_bits: int  # S
    earliest_slot: int  # τ_v: the gNB serves the CV from this slot on
    deadline_slot: int  # slot of the end of the sojourn bound or of the round, whichever is first
    worst_j: float  # e_cmp + e_tx, worst case
    bypass_ns: int | None = None  # without constraints: the update is delivered at most this long after the order
    ordered_ns: int = 0  # time of the order
    samples: int = 0  # D
    number: int = 0  # distinguishes the orders of a CV; seeds the shuffling of its mini-batches
    version: int | None = None  # model version the CV trains from; None with rounds
    model_ns: int = 0  # time from the order until the CV has the model
    expiry_ns: int | None = None  # time at which the order is revoked; None: when the round ends

    @property
    def bypasses_network(self) -> bool:
        """Whether the update is delivered without the radio, and so surely."""
        return self.bypass_ns is not None


@dataclass(frozen=True)
class OrderOutcome:
    """How an order ended, from the CV to the server. The update itself is computed later, when it is aggregated."""

    order: TrainOrder
    account: Account
    lost: Loss | None  # reason of the loss; None: delivered
    tx_slots: int  # slots in which the CV sent
    end_ns: int  # time at which the update was received or lost
    event: int  # number of the trace event that ended the order
    lost_slots: int = 0  # slots of these whose grant was lost
    lost_j: float = 0.0  # energy of these slots

    @property
    def delivered_fraction(self) -> float:
        """p_suc = 1 − Q/S (ProbSuc), the fraction of the payload that the gNB received."""
        if self.lost is None:
            return 1.0
        return self.account.bits_drained / self.order.payload_bits

    @property
    def worst_cost(self) -> float:
        """ξ̂, the charge in the worst case that the plan assumed."""
        return self.account.price_per_joule * self.order.worst_j + self.account.base_fee


@dataclass(frozen=True)
class Update:
    """What a CV returns to the server: how its order ended, and what it trained from."""

    outcome: OrderOutcome
    start: Start = field(metadata=NOT_SAVED)

    @property
    def delivered(self) -> bool:
        """Whether the update can be aggregated."""
        return self.outcome.lost is None


@dataclass(frozen=True)
class Broadcast:
    """The transmission of the model to the CVs of a plan."""

    ordered_ns: int  # time of the plan
    start_ns: int
    end_ns: int  # when all have the model
    cvs: int  # number of CVs that get it
    bits: int
    rate_bps: float
    energy_j: float  # of the gNB


@dataclass(frozen=True)
class Decision:
    """One planning decision of the server: what it observed, what it ordered, and the outcomes of these orders."""

    observation: Observation
    plan: Plan
    outcomes: list[OrderOutcome]  # of the orders that have ended; sorted by CV in a report
    broadcast: Broadcast | None = None  # None: nobody gets the model, or the downlink is ignored

    @property
    def model_ns(self) -> int:
        """Time from the orders until the CVs have the model."""
        return self.broadcast.end_ns - self.broadcast.ordered_ns if self.broadcast else 0

    def overruns(self, outcome: OrderOutcome) -> Iterator[str]:
        """The limits that one of its orders exceeded."""
        row = int(np.searchsorted(self.observation.cv, outcome.order.cv))
        constants, worst_slots = self.observation.constants, int(self.observation.worst_slots[row])
        pattern, account = constants.access.pattern, outcome.account
        if outcome.tx_slots > (worst_slots if pattern.is_all_uplink else pattern.most_slots(worst_slots)):
            yield "upload_slots"
        if account.energy_j > self.observation.snapshot.agreements[row].energy_budget_j * (1 + _TOLERANCE):
            yield "vehicle_energy"
        if account.paid > outcome.worst_cost * (1 + _TOLERANCE):
            yield "vehicle_cost"
        late = outcome.end_ns > constants.grid.start_ns(outcome.order.deadline_slot)
        if late or outcome.lost in ("round_ended", "expired"):
            yield "deadline"


@dataclass(frozen=True)
class Applied:
    """An update that was aggregated into the global model."""

    weight: float
    staleness: int = 0  # server steps between the model version it was trained from and its aggregation


@dataclass
class RoundReport:
    """Decisions, outcomes and evaluation of a finished round, or of a window of t_th in a run without rounds."""

    round: int  # k, from 1
    start_ns: int
    end_ns: int  # not known before it ends
    in_coverage: int  # number of CVs in coverage at its start
    decisions: list[Decision] = field(default_factory=list)  # the first at its start; with rounds it is the only one
    applied: list[Applied] = field(default_factory=list)  # updates aggregated during the round
    steps: int = 0  # number of new global models
    evaluation: Evaluation | None = None  # None: not evaluated in this round
    theorem2_sum: float | None = None  # Σ p_v/(q_v·p_suc,v), where the scheme aggregates by such weights

    @property
    def outcomes(self) -> list[OrderOutcome]:
        """Outcomes of all orders of the round."""
        return [outcome for decision in self.decisions for outcome in decision.outcomes]

    @property
    def plan(self) -> Plan:
        """The plan made at the start of the round."""
        return self.decisions[0].plan

    @property
    def status(self) -> str:
        """Status of the first plan with an order, else of the plan at the start of the round."""
        return next((d.plan.status for d in self.decisions if len(d.plan.cv)), self.plan.status)

    @property
    def constrained(self) -> list[Decision]:
        """The decisions that are subject to the constraints, i.e. whose updates are sent through the network."""
        return [decision for decision in self.decisions if not decision.plan.bypasses_network]

    @property
    def ineligible(self) -> dict[int, str]:
        """CVs that could not get an order at the start and got none later in the round -> the constraint that binds."""
        ordered = {outcome.order.cv for outcome in self.outcomes}
        return {cv: limit for cv, limit in self.plan.ineligible.items() if cv not in ordered}

    def overruns(self) -> Iterator[str]:
        """The limits that the round exceeded, each once for every time it did so.

        upload_slots: more slots than t̄_tx. vehicle_energy: more energy than e_bud. vehicle_cost: a higher charge than
        planned. deadline: not received by the end of the sojourn bound or of the round. round_cost: more paid than Ξ.
        """
        paid = 0.0
        for decision in self.constrained:
            for outcome in decision.outcomes:
                yield from decision.overruns(outcome)
                paid += outcome.account.paid
        if paid > self.decisions[0].observation.constants.budget * (1 + _TOLERANCE):
            yield "round_cost"


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
