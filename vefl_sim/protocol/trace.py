"""The event trace: what happened, when, to whom, and because of what.

Every event has a number and, where there is one, the number of the event that caused it, so that an order
leads to its training, its upload and its outcome.
"""

from collections.abc import Callable
from typing import Any

from vefl_sim.core.state import State

Append = Callable[[dict[str, Any]], None]

KINDS = (
    "coverage_entered",
    "coverage_left",
    "round_started",
    "cv_ineligible",
    "cv_passed_over",
    "training_ordered",
    "training_finished",
    "upload_offered",
    "upload_started",
    "upload_received",
    "update_lost",
    "round_ended",
    "update_aggregated",
    "model_aggregated",
    "model_evaluated",
)

LOSSES = ("round_ended", "coverage_left", "training_unfinished", "expired")
"""Why an update can be lost; exactly one of them is the reason of every `update_lost`."""


class Trace:
    """Notes events as they happen."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._count = 0

    def note(self, time_ns: int, kind: str, actor: str, **columns: Any) -> int:
        """Record one event and return its number, to be given as `cause` of what follows from it."""
        self._count += 1
        self._append({"id": self._count, "time_ns": time_ns, "kind": kind, "actor": actor, **columns})
        return self._count

    def state(self) -> State:
        """How many there have been."""
        return {"count": self._count}

    def restore(self, state: State) -> None:
        """Count on from there."""
        self._count = state["count"]
