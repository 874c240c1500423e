"""A window of t_th in a run without rounds: the orders given in it, and their outcomes."""

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
    cost: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))  # CV -> worst-case cost so far
    energy_j: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))  # CV -> worst case so far

    def commit(self, order: TrainOrder, agreement: Agreement) -> None:
        """Add the worst-case cost and energy of a new order to those of its CV in this window."""
        self.cost[order.cv] += agreement.price_per_joule * order.worst_j + agreement.base_fee
        self.energy_j[order.cv] += order.worst_j

    def committed(self, cvs: Sequence[int]) -> Committed:
        """Worst-case cost and energy of the orders of these CVs so far, and the cost of all CVs."""
        cost, energy_j = (
            np.array([counts.get(cv, 0.0) for cv in cvs], np.float64) for counts in (self.cost, self.energy_j)
        )
        return Committed(cost, energy_j, float(sum(self.cost.values())))

    def report(self) -> RoundReport:
        """The report of the window; to be called when the window is over and all its orders have ended."""
        for decision in self.decisions:
            decision.outcomes.sort(key=lambda outcome: outcome.order.cv)
        assert self.end_ns is not None
        return RoundReport(
            self.round, self.start_ns, self.end_ns, self.in_coverage, self.decisions, self.applied, self.steps,
            self.evaluation,
        )  # fmt: skip

    def state(self) -> State:
        """The window as plain values, for a checkpoint."""
        return vars(self) | {
            "decisions": [_decision_state(decision) for decision in self.decisions],
            "applied": [dict(vars(update)) for update in self.applied],
            "evaluation": dict(vars(self.evaluation)) if self.evaluation else None,
            "cost": dict(self.cost),
            "energy_j": dict(self.energy_j),
        }

    @classmethod
    def from_state(cls, state: State, constants: RoundConstants) -> "Window":
        """Rebuild the window from its checkpoint state."""
        rebuilt = {
            "decisions": [_decision_from_state(decision, constants) for decision in state["decisions"]],
            "applied": [Applied(**update) for update in state["applied"]],
            "evaluation": Evaluation(**state["evaluation"]) if state["evaluation"] else None,
            "cost": defaultdict(float, state["cost"]),
            "energy_j": defaultdict(float, state["energy_j"]),
        }
        return cls(**state | rebuilt)


def _decision_state(decision: Decision) -> State:
    """A decision as plain values, for a checkpoint."""
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


def _decision_from_state(state: State, constants: RoundConstants) -> Decision:
    """Rebuild a decision from its checkpoint state."""
    values = state["snapshot"]
    agreements = [Agreement(**agreement) for agreement in values["agreements"]]
    snapshot = CoverageSnapshot(**values | {"agreements": agreements, "committed": Committed(**values["committed"])})
    observation = Observation(snapshot, constants, state["worst_slots"], state["window_slots"])
    return Decision(observation, Plan(**state["plan"]), [outcome_from_state(outcome) for outcome in state["outcomes"]])


def outcome_state(outcome: OrderOutcome) -> State:
    """An outcome as plain values, for a checkpoint."""
    return vars(outcome) | {"order": dict(vars(outcome.order)), "account": dict(vars(outcome.account))}


def outcome_from_state(state: State) -> OrderOutcome:
    """Rebuild an outcome from its checkpoint state."""
    return OrderOutcome(**state | {"order": TrainOrder(**state["order"]), "account": Account(**state["account"])})
