"""A window of t_th in a run without rounds: what was ordered in it, and what became of that."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vefl_sim.core.state import State
from vefl_sim.learning.learner import Evaluation
from vefl_sim.protocol.ledger import Account
from vefl_sim.protocol.messages import Applied, Decision, OrderOutcome, RoundReport, TrainOrder
from vefl_sim.schemes.observation import Committed, CoverageSnapshot, Observation, RoundConstants
from vefl_sim.schemes.scheme import Plan
from vefl_sim.schemes.sla import Agreement


@dataclass
class Window:
    """Orders belong to the window in which they are given; they may end in the next."""

    round: int
    start_ns: int
    in_coverage: int
    opened: int  # event
    end_ns: int | None = None  # None: not over yet
    decisions: list[Decision] = field(default_factory=list)
    applied: list[Applied] = field(default_factory=list)
    steps: int = 0
    evaluation: Evaluation | None = None
    cost: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))  # by CV, of its orders so far
    energy_j: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))

    def commit(self, order: TrainOrder, agreement: Agreement) -> None:
        """Count an order against the CV's share of the window."""
        self.cost[order.cv] += agreement.price_per_joule * order.worst_j + agreement.base_fee
        self.energy_j[order.cv] += order.worst_j

    def committed(self, cvs: Sequence[int]) -> Committed:
        """What these CVs, and all together, have taken up."""
        cost, energy_j = (
            np.array([counts.get(cv, 0.0) for cv in cvs], np.float64) for counts in (self.cost, self.energy_j)
        )
        return Committed(cost, energy_j, float(sum(self.cost.values())))

    def closed(self) -> RoundReport:
        """When it is over and all its orders have ended."""
        for decision in self.decisions:
            decision.outcomes.sort(key=lambda outcome: outcome.order.cv)
        assert self.end_ns is not None
        return RoundReport(
            self.round, self.start_ns, self.end_ns, self.in_coverage, self.decisions, self.applied, self.steps,
            self.evaluation,
        )  # fmt: skip

    def state(self) -> State:
        """Everything, in plain values."""
        return vars(self) | {
            "decisions": [_decision_state(decision) for decision in self.decisions],
            "applied": [dict(vars(update)) for update in self.applied],
            "evaluation": dict(vars(self.evaluation)) if self.evaluation else None,
            "cost": dict(self.cost),
            "energy_j": dict(self.energy_j),
        }

    @classmethod
    def restored(cls, state: State, constants: RoundConstants) -> "Window":
        """As it was."""
        made = {
            "decisions": [_decision(decision, constants) for decision in state["decisions"]],
            "applied": [Applied(**update) for update in state["applied"]],
            "evaluation": Evaluation(**state["evaluation"]) if state["evaluation"] else None,
            "cost": defaultdict(float, state["cost"]),
            "energy_j": defaultdict(float, state["energy_j"]),
        }
        return cls(**state | made)


def _decision_state(decision: Decision) -> State:
    observation, snapshot = decision.observation, decision.observation.snapshot
    return {
        "snapshot": vars(snapshot)
        | {
            "agreements": [dict(vars(agreement)) for agreement in snapshot.agreements],
            "committed": dict(vars(snapshot.committed)),
        },
        "worst_slots": observation.worst_slots,
        "window_slots": observation.window_slots,
        "plan": dict(vars(decision.plan)),
        "outcomes": [outcome_state(outcome) for outcome in decision.outcomes],
    }


def _decision(state: State, constants: RoundConstants) -> Decision:
    seen = state["snapshot"]
    agreements = [Agreement(**agreement) for agreement in seen["agreements"]]
    snapshot = CoverageSnapshot(**seen | {"agreements": agreements, "committed": Committed(**seen["committed"])})
    observation = Observation(snapshot, constants, state["worst_slots"], state["window_slots"])
    return Decision(observation, Plan(**state["plan"]), [outcome_of(outcome) for outcome in state["outcomes"]])


def outcome_state(outcome: OrderOutcome) -> State:
    """An outcome in plain values."""
    return vars(outcome) | {"order": dict(vars(outcome.order)), "account": dict(vars(outcome.account))}


def outcome_of(state: State) -> OrderOutcome:
    """The outcome that these values are of."""
    return OrderOutcome(**state | {"order": TrainOrder(**state["order"]), "account": Account(**state["account"])})
