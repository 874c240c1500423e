"""The figures of a whole run, added up round by round."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from vefl_sim.core.state import State
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.protocol.trace import LOSSES


@dataclass
class Tally:
    """Counts rounds, updates, money and energy."""

    rounds: int = 0
    ordered: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    cost: float = 0.0
    energy_j: float = 0.0
    steps: int = 0
    applied: int = 0
    staleness: int = 0  # of all applied updates together
    accuracies: list[float] = field(default_factory=list)
    diverged: bool = False

    def add(self, closed: RoundReport) -> None:
        """Count a round."""
        self.rounds += 1
        self.ordered += len(closed.outcomes)
        self.lost.update(outcome.lost for outcome in closed.outcomes if outcome.lost)
        self.cost += sum(outcome.account.paid for outcome in closed.outcomes)
        self.energy_j += sum(outcome.account.energy_j for outcome in closed.outcomes)
        self.steps += closed.steps
        self.applied += len(closed.applied)
        self.staleness += sum(update.staleness for update in closed.applied)
        if closed.evaluation:
            self.accuracies.append(closed.evaluation.accuracy)
            self.diverged = not math.isfinite(closed.evaluation.loss)

    def state(self) -> State:
        """What has been counted."""
        return vars(self) | {"lost": dict(self.lost), "accuracies": list(self.accuracies)}

    def restore(self, state: State) -> None:
        """Count on from there."""
        vars(self).update(state | {"lost": Counter(state["lost"])})

    def figures(self) -> dict[str, Any]:
        """As they stand in summary.json."""
        return {
            "rounds": self.rounds,
            "updates_ordered": self.ordered,
            "updates_delivered": self.ordered - self.lost.total(),
            "updates_lost": {cause: self.lost[cause] for cause in LOSSES},
            "server_steps": self.steps,
            "updates_applied": self.applied,
            "mean_staleness": self.staleness / self.applied if self.applied else None,
            "cost": self.cost,
            "energy_j": self.energy_j,
            "first_accuracy": self.accuracies[0] if self.accuracies else None,
            "last_accuracy": self.accuracies[-1] if self.accuracies else None,
            "best_accuracy": max(self.accuracies, default=None),
            "diverged": self.diverged,
        }
