"""The figures of a whole run, summed up round by round."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vefl_sim.core.state import SavedAttributes
from vefl_sim.protocol.trace import LOSSES

if TYPE_CHECKING:
    from vefl_sim.protocol.messages import RoundReport  # slow to import, and not needed to list runs


@dataclass
class Tally(SavedAttributes):
    """Counts rounds, updates, money and energy."""

    rounds: int = 0
    ordered: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    cost: float = 0.0
    energy_j: float = 0.0
    steps: int = 0
    applied: int = 0
    staleness: int = 0  # summed over all applied updates
    accuracies: list[float] = field(default_factory=list)  # empty without classes
    losses: list[float] = field(default_factory=list)
    diverged: bool = False
    saved = (
        *("rounds", "ordered", "lost", "cost", "energy_j", "steps", "applied", "staleness"),
        *("accuracies", "losses", "diverged"),
    )

    def add(self, report: "RoundReport") -> None:
        """Add the figures of a finished round."""
        self.rounds += 1
        self.ordered += len(report.outcomes)
        self.lost.update(outcome.lost for outcome in report.outcomes if outcome.lost)
        self.cost += sum(outcome.account.paid for outcome in report.outcomes)
        self.energy_j += sum(outcome.account.energy_j for outcome in report.outcomes)
        self.steps += report.steps
        self.applied += len(report.applied)
        self.staleness += sum(update.staleness for update in report.applied)
        if report.evaluation:
            if report.evaluation.accuracy is not None:
                self.accuracies.append(report.evaluation.accuracy)
            self.losses.append(report.evaluation.loss)
            self.diverged = not math.isfinite(report.evaluation.loss)

    def figures(self) -> dict[str, Any]:
        """The figures in the form of summary.json, which has finite numbers only."""
        losses = [loss if math.isfinite(loss) else None for loss in self.losses]
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
            "first_loss": losses[0] if losses else None,
            "last_loss": losses[-1] if losses else None,
            "best_loss": min(filter(math.isfinite, self.losses), default=None),
            "diverged": self.diverged,
        }


def energy_unit(joules: float) -> tuple[str, float]:
    """The unit in which an energy is readable, and how many joules it is."""
    units = (("MJ", 1e6), ("kJ", 1e3), ("J", 1.0), ("mJ", 1e-3))
    return next((unit for unit in units if abs(joules) >= unit[1]), units[-1] if joules else units[2])


def energy_text(joules: float) -> str:
    """An energy with three digits or more, for example 60.9 J or 1.23 kJ."""
    unit, factor = energy_unit(joules)
    return f"{joules / factor:.{1 if joules >= 10 * factor else 2}f} {unit}"


TABLE_DIGESTS = "table_digests"
"""Key of the figures: digests of the tables, by their names."""
_TABLES = {"updates_lost": int | float, "plan_breaches": int | float, "overruns": int | float, TABLE_DIGESTS: str}


def are_figures(value: object) -> bool:
    """Whether a value read from a file is the figures of a run: at least its rounds, and each figure of its type."""
    if not isinstance(value, dict) or not isinstance(value.get("rounds"), int):
        return False
    for name, figure in value.items():
        if kind := _TABLES.get(name):
            if not isinstance(figure, dict) or not all(isinstance(entry, kind) for entry in figure.values()):
                return False
        elif not isinstance(figure, str if name in ("state", "content_digest") else int | float | None):
            return False
    return True
