"""The orders of a run, each with its events from the decision of the server to the aggregation of the update."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, NamedTuple

import pandas as pd

from vefl_sim.core.clock import to_s

Event = dict[str, Any]
"""One row of the events table, without the columns that do not apply."""

_LATER = {
    "training_finished",
    "upload_offered",
    "upload_started",
    "upload_received",
    "update_lost",
    "update_aggregated",
}


class Phase(NamedTuple):
    """What a CV does for an order between two of its events."""

    name: str
    begin: Event
    end: Event | None  # None if the run was stopped in it
    notes: dict[str, Any]


@dataclass
class Order:
    """An order to train and to send an update, with the events that followed from it."""

    number: int
    ordered: Event
    later: dict[str, Event] = field(default_factory=dict)  # by kind

    @property
    def offered(self) -> Event | None:
        """The event at which the update joined the queue of the gNB."""
        return self.later.get("upload_offered")

    @property
    def outcome(self) -> Event | None:
        """The event that says whether the update was received or lost."""
        return self.later.get("upload_received") or self.later.get("update_lost")

    @property
    def compute_j(self) -> float:
        """Energy of the training: all that the order used if the CV never offered its update."""
        finished = self.later.get("training_finished") or self.outcome or {}
        return float(finished.get("energy_j", 0.0))

    @property
    def transmit_j(self) -> float:
        """Energy of the upload."""
        return float((self.outcome or {}).get("energy_j", self.compute_j)) - self.compute_j

    def phases(self) -> Iterator[Phase]:
        """Training, waiting for pRBs if that took time, and the upload, as far as the order got."""
        finished, started, outcome = self.later.get("training_finished"), self.later.get("upload_started"), self.outcome
        used = self.later.get("update_aggregated", {})
        applied = {name: used[name] for name in ("weight", "version", "staleness") if name in used}
        energy = {"energy_j": self.compute_j} if finished or outcome else {}
        direct = {} if started else applied  # without constraints there is no upload
        yield Phase("training", self.ordered, finished or outcome, notes_of(self.ordered) | energy | direct)
        if self.offered and (not started or started["time_ns"] > self.offered["time_ns"]):
            yield Phase("waiting", self.offered, started or outcome, notes_of(self.offered))
        if started:
            result = notes_of(outcome) | {"energy_j": self.transmit_j} if outcome else {}
            yield Phase("upload", started, outcome, notes_of(self.offered or started) | result | applied)


def events_in(table: pd.DataFrame) -> list[Event]:
    """The events of a table in the order in which they happened; those without a number or a time are left out."""
    known = table.dropna(subset=["id", "time_ns", "kind"])
    return rows_of(known[known["time_ns"] >= 0].sort_values(["time_ns", "id"], kind="stable"))


def rows_of(table: pd.DataFrame) -> list[Event]:
    """The rows of a table, without the columns that do not apply."""
    columns = [[(name, value) for value in table[name].tolist()] for name in table.columns]
    present = zip(*(table[name].notna().tolist() for name in table.columns), strict=True)
    return [dict(compress(row, there)) for row, there in zip(zip(*columns, strict=True), present, strict=True)]


def orders_in(events: list[Event]) -> list[Order]:
    """The orders among these events; a later event belongs to the order of its cause."""
    orders, order_of = list[Order](), dict[int, Order]()
    for event in sorted(events, key=lambda event: int(event["id"])):
        if event["kind"] == "training_ordered":
            orders.append(order := Order(len(orders) + 1, event))
        elif event["kind"] in _LATER and event.get("cause") in order_of:
            order = order_of[event["cause"]]
            order.later[event["kind"]] = event
        else:
            continue
        order_of[event["id"]] = order
    return orders


_NOT_NOTES = {"id", "cause", "time_ns", "kind", "actor", "cv"}


def notes_of(row: Event) -> dict[str, Any]:
    """The columns of a row that say more than what it is, when and whose; times are in seconds."""
    columns = {name: value for name, value in row.items() if name not in _NOT_NOTES}
    return {
        f"{name[:-3]}_s" if name.endswith("_ns") else name: to_s(value) if name.endswith("_ns") else value
        for name, value in columns.items()
    }
