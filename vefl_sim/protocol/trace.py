"""The event trace: what happened, when, to which CV, and which earlier event caused it.

Every event has a number and, where there is one, the number of the event that caused it, so that an order can
be followed to its training, its upload and its outcome.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args

from vefl_sim.core.state import State

Append = Callable[[dict[str, Any]], None]

KINDS = (
    "coverage_entered",
    "coverage_left",
    "trip_ended",
    "round_started",
    "cv_ineligible",
    "cv_passed_over",
    "training_ordered",
    "model_received",
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

Departure = Literal["coverage_left", "trip_ended"]
DEPARTURES: tuple[Departure, ...] = get_args(Departure)
"""How a CV leaves: it crosses the circle around the gNB, or its trip ends inside."""

LOSSES = ("round_ended", *DEPARTURES, "training_unfinished", "expired")
"""Reasons for the loss of an update; every `update_lost` event has exactly one of them."""


class Trace:
    """Numbers the events of a run and appends them to the events table."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._count = 0

    def note(self, time_ns: int, kind: str, actor: str, **columns: Any) -> int:
        """Record one event and return its number, to be passed as `cause` of the events that follow from it."""
        self._count += 1
        self._append({"id": self._count, "time_ns": time_ns, "kind": kind, "actor": actor, **columns})
        return self._count

    def state(self) -> State:
        """The number of events so far."""
        return {"count": self._count}

    def restore(self, state: State) -> None:
        """Restore the event count, so that numbers continue after a checkpoint."""
        self._count = state["count"]
