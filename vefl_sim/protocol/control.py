"""Where a run waits for whoever steps through it: before every round and, if asked to, for plans and allocations."""

from dataclasses import dataclass
from typing import Any

from simpy import Event

from vefl_sim.optimize.rat.problem import RatProblem
from vefl_sim.protocol.instants import NanosecondEnvironment
from vefl_sim.schemes.observation import Observation


@dataclass(frozen=True)
class RoundDue:
    """The next round is about to start: here a run can be looked at, saved and stopped."""

    round: int


@dataclass(frozen=True)
class PlanDue:
    """The server needs a plan for what it observes."""

    observation: Observation


@dataclass(frozen=True)
class AllocationDue:
    """The gNB needs an allocation of pRBs and power for a slot."""

    problem: RatProblem


Question = RoundDue | PlanDue | AllocationDue


@dataclass
class Control:
    """What the run waits for now; nothing happens until the answer, so that waiting changes nothing."""

    env: NanosecondEnvironment
    stops_for: type = RoundDue  # what the run waits for, besides rounds: else its own parts plan and allocate
    due: Question | None = None

    def ask(self, question: Question) -> Event:
        """An event that succeeds with the answer to a question."""
        self.due, self._answer = question, self.env.event()
        return self._answer

    def answer(self, value: Any = None) -> None:
        """Answer the question that is due; the run goes on from there."""
        self.due = None
        self._answer.succeed(value)
