"""Select the events of a run, follow them to their causes, and print one line per event."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from vefl_sim.core.errors import BadInput


def select(
    events: pd.DataFrame,
    *,
    cv: int | None = None,
    round: int | range | None = None,
    kind: str | None = None,
    between_s: tuple[float | None, float | None] = (None, None),
) -> pd.DataFrame:
    """Return the events that match all given filters; `between_s` is a half-open range of simulated seconds."""
    rounds = range(round, round + 1) if isinstance(round, int) else round
    first_s, last_s = between_s
    conditions = (
        cv is None or events["cv"] == cv,
        rounds is None or events["round"].between(rounds.start, rounds.stop, inclusive="left"),
        kind is None or events["kind"] == kind,
        first_s is None or events["time_ns"] >= first_s * 1e9,
        last_s is None or events["time_ns"] < last_s * 1e9,
    )
    keep = pd.Series(True, index=events.index)
    for condition in conditions:
        keep &= condition
    return events[keep.fillna(False)]


def require_known(events: pd.DataFrame, cv: int | None, rounds: range | None) -> None:
    """Refuse a CV, or rounds, that a run does not have."""
    chosen = [("--cv", "cv", range(cv, cv + 1) if cv is not None else None), ("--round", "round", rounds)]
    for option, column, numbers in chosen:
        known = events[column].dropna()
        if numbers is None or known.between(numbers.start, numbers.stop, inclusive="left").any():
            continue
        written = f"{numbers.start}-{numbers.stop - 1}" if len(numbers) > 1 else f"{numbers.start}"
        have = f"they are between {known.min()} and {known.max()}" if len(known) else "it has none"
        name = "CV" if column == "cv" else "round"
        raise BadInput(f"{option} {written}: no event of this run has such a {name}; {have}.")


Event = dict[str, Any]
"""One row of the events table; a column that does not apply is None."""


def rows_of(events: pd.DataFrame) -> list[Event]:
    """All events as dictionaries, which are a hundred times as fast to read as rows of a data frame."""
    names = list(events.columns)
    missing: Any = None  # which the types of pandas do not foresee
    columns = [events[name].to_numpy(object, na_value=missing).tolist() for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


Order = dict[str, Event]
"""The events of an order by their kinds, from `training_ordered` on."""


def orders_in(events: Iterable[Event]) -> list[Order]:
    """The orders among these events, of which causes come first; a later event belongs to the order of its cause."""
    orders, order_of = list[Order](), dict[int, Order]()
    for event in events:
        if event["kind"] == "training_ordered":
            orders.append(order := Order())
        elif (known := order_of.get(event["cause"])) is not None:
            order = known
        else:
            continue
        order[event["kind"]] = event
        order_of[event["id"]] = order
    return orders


def outcome_of(order: Order) -> Event | None:
    """The event that says whether the update of an order was received or lost."""
    return order.get("upload_received") or order.get("update_lost")


def causes_of(by_id: Mapping[int, Event], event_id: int) -> list[Event]:
    """An event and all its causes, the earliest cause first."""
    links = [by_id[event_id]]
    while (cause := links[-1]["cause"]) is not None:
        if cause >= links[-1]["id"]:
            raise ValueError(f"event {cause} comes before its cause")
        links.append(by_id[cause])
    return links[::-1]


_LEADING = ("id", "cause", "time_ns", "kind", "actor", "round", "cv")


def event_lines(events: pd.DataFrame) -> Iterator[str]:
    """One line per event: time, number, cause, actor, kind, and all other columns that have a value."""
    for _, event in events.iterrows():
        others = (name for name in event.index if name not in _LEADING and not pd.isna(event[name]))
        details = [f"{name}={_short(event[name])}" for name in others]
        cause = "" if pd.isna(event["cause"]) else f" <- {event['cause']}"
        round_ = "" if pd.isna(event["round"]) else f" round {event['round']}"
        cv = "" if pd.isna(event["cv"]) or event["actor"].startswith("cv ") else f" cv {event['cv']}"
        yield (
            f"{event['time_ns'] / 1e9:12.6f} s  #{event['id']}{cause}  {event['actor']}: {event['kind']}"
            f"{cv}{round_}  {' '.join(details)}".rstrip()
        )


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
