"""All decisions of the server about CVs: orders, each with its whole life, and refusals."""

from collections.abc import Iterator
from typing import Any

from vefl_sim.analysis.events import Event
from vefl_sim.analysis.report.source import Source
from vefl_sim.protocol.trace import DEPARTURES

Columns = dict[str, list[Any]]
_MS = 1e6  # nanoseconds
_PROGRESS = ("training_finished", "upload_offered", "upload_started")
_ENDS = {"upload_received": "delivered", "update_lost": "lost"}
_REFUSALS = {"cv_ineligible": "ineligible", "cv_passed_over": "passed_over"}


def orders_of(source: Source) -> Columns:
    """One row per order, as columns: times in ms, and what happened to its update."""
    return _columns(all_orders(source))


def all_orders(source: Source) -> Iterator[dict[str, Any]]:
    """All orders of the run, CV by CV."""
    for cv in source.explanations.cvs:
        yield from _orders(source.events_of(cv))


def refusals_of(source: Source) -> Columns:
    """One row per CV that asked for an order, or was in coverage when a round was planned, and got none."""
    return _columns(
        {
            "round": event["round"],
            "cv": cv,
            "at": _ms(event["time_ns"]),
            "state": _REFUSALS[event["kind"]],
            "reason": event["reason"],
            "distance": _rounded(event["distance_m"], 1),
        }
        for cv in source.explanations.cvs
        for event in source.events_of(cv)
        if event["kind"] in _REFUSALS
    )


def visits_of(source: Source) -> list[list[int]]:
    """For each CV its number, then the times in ms at which it entered and left coverage in turn."""
    visits = []
    for cv in source.explanations.cvs:
        crossings = [event for event in source.events_of(cv) if event["kind"] in ("coverage_entered", *DEPARTURES)]
        visits.append([cv, *(_ms(event["time_ns"]) for event in crossings)])
    return visits


def _orders(events: list[Event]) -> Iterator[dict[str, Any]]:
    """The orders of a CV; an event belongs to the order of its cause."""
    orders = dict[int, dict[str, Any]]()
    for event in events:
        if event["kind"] == "training_ordered":
            orders[event["id"]] = _new(event)
        elif (order := orders.get(event["cause"])) is not None:
            _follow(order, event)
            orders[event["id"]] = order
    yield from {id(order): order for order in orders.values()}.values()


def _new(event: Event) -> dict[str, Any]:
    start, sojourn = event["time_ns"], event["sojourn_ns"]
    return {
        "round": event["round"],
        "cv": event["cv"],
        "at": _ms(start),
        "trained": None,
        "offered": None,
        "started": None,
        "ended": None,
        "state": "in_progress",
        "reason": None,
        "earliest": _ms(event["earliest_ns"]),
        "deadline": _ms(event["deadline_ns"]),
        "sojourn": None if sojourn is None else _ms(start + sojourn),
        "distance": _rounded(event["distance_m"], 1),
        "iterations": event["iterations"],
        "slots": None,
        "bits": None,
        "left": None,
        "snr": None,
        "joules": None,
        "paid": None,
        "weight": None,
    }


def _follow(order: dict[str, Any], event: Event) -> None:
    """Add to an order what an event says about it."""
    kind = event["kind"]
    if kind in _PROGRESS:
        order[kind.split("_")[1] if kind != "training_finished" else "trained"] = _ms(event["time_ns"])
    elif kind in _ENDS:
        order |= {"ended": _ms(event["time_ns"]), "state": _ENDS[kind], "reason": event["reason"]}
        order |= {"slots": event["slots"], "bits": _rounded(event["bits"], 0), "left": _rounded(event["bits_left"], 0)}
        order |= {"snr": _rounded(event["mean_snr_db"], 1), "joules": _rounded(event["energy_j"], 3)}
        order["paid"] = _rounded(event["cost"], 2)
    elif kind == "update_aggregated":
        order["weight"] = _rounded(event["weight"], 4)


def _columns(rows: Iterator[dict[str, Any]]) -> Columns:
    """Rows in the order of their times, as columns."""
    ordered = sorted(rows, key=lambda row: (row["at"], row["cv"]))
    return {name: [row[name] for row in ordered] for name in (ordered[0] if ordered else ())}


def _ms(time_ns: int | None) -> Any:
    return None if time_ns is None else round(time_ns / _MS, 2)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(float(value), digits)
