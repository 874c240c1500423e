"""The updates that say most about a run: the costliest losses, or where none was lost, the closest calls."""

import math
from dataclasses import dataclass
from typing import Any

from vefl_sim.analysis.reasons import in_words
from vefl_sim.analysis.report.markup import button, fold, html, text_lines
from vefl_sim.analysis.report.orders import all_orders
from vefl_sim.analysis.report.source import Source

_SHOWN = 10


@dataclass(frozen=True)
class Story:
    """An update with its explanation."""

    round: int
    cv: int
    time_ms: int
    """When it was lost or received."""
    outcome: str
    facts: list[str]
    why: list[str]


@dataclass(frozen=True)
class Stories:
    """A section of the page; the map opens with the first story."""

    title: str
    lead: str
    stories: list[Story]

    def html(self, unit: str) -> str:
        """The stories as a list; each can be opened to read why, and shown on the map. `unit`: "round" or "window"."""
        items = "".join(_item(story, unit) for story in self.stories)
        return f"<ol class='losses'>{items}</ol>" if items else ""


def stories_of(source: Source) -> Stories:
    """The ten lost updates for which most was paid; if none was lost, the ten with the least time to spare."""
    lost = [row for row in source.vehicles if row["state"] == "lost" and row["ordered_ns"] is not None]
    if lost:
        lost.sort(key=lambda row: (-(row["paid"] or 0.0), row["round"], row["cv"]))
        which = f"The {_SHOWN} costliest of {len(lost):,} lost updates" if len(lost) > _SHOWN else "All lost updates"
        return Stories(
            "Worst losses", f"{which}, by what was paid for them.", [_loss(source, row) for row in lost[:_SHOWN]]
        )
    received = [order for order in all_orders(source) if order["state"] == "delivered"]
    received.sort(key=lambda order: (_spare_ms(order), -(order["slots"] or 0), order["round"], order["cv"]))
    lead = "No update was lost." + " These had the least time left before their deadline." * bool(received)
    return Stories("Closest calls", lead, [_close_call(source, order) for order in received[:_SHOWN]])


def _loss(source: Source, row: dict[str, Any]) -> Story:
    """A lost update, from a row of the vehicles table."""
    sent = row["delivered_fraction"]
    facts = [f"paid {row['paid'] or 0.0:,.2f}", f"{(row['compute_j'] or 0.0) + (row['transmit_j'] or 0.0):,.2f} J"]
    return Story(
        round=row["round"],
        cv=row["cv"],
        time_ms=round((row["ordered_ns"] + (row["delay_ns"] or 0)) / 1e6),
        outcome=in_words(row["reason"]),
        facts=facts + ([] if sent is None else [f"{min(sent, 0.999):.1%} sent"]),
        why=_why(source, row["cv"], row["round"]),
    )


def _close_call(source: Source, order: dict[str, Any]) -> Story:
    """A delivered update, from its order."""
    spare_ms = _spare_ms(order)
    if math.isinf(spare_ms):
        outcome = "delivered, without a deadline"
    elif spare_ms < source.experiment.slots.slot_ns / 1e6:
        outcome = "delivered in the last slot before its deadline"
    else:
        outcome = f"delivered {spare_ms:,.1f} ms before its deadline"
    return Story(
        round=order["round"],
        cv=order["cv"],
        time_ms=round(order["ended"]),
        outcome=outcome,
        facts=[f"paid {order['paid'] or 0.0:,.2f}", f"{order['joules'] or 0.0:,.2f} J"],
        why=_why(source, order["cv"], order["round"]),
    )


def _spare_ms(order: dict[str, Any]) -> float:
    """Time between the end of an upload and its deadline."""
    return math.inf if order["deadline"] is None else float(order["deadline"] - order["ended"])


def _why(source: Source, cv: int, number: int) -> list[str]:
    """The text of `trace --why`; empty for a round that the trace does not have."""
    return source.explanations.why(cv, number) if number in source.explanations.started else []


def _item(story: Story, unit: str) -> str:
    facts = "".join(f"<span>{html(fact)}</span>" for fact in story.facts)
    title = (
        f"<span class='who'>CV {html(story.cv)}, {unit} {html(story.round)}</span> <span>{html(story.outcome)}</span>"
    )
    show = button("Show on the map", "jump", cv=story.cv, time=story.time_ms, round=story.round)
    return f"<li>{fold(f'{title}<span class=facts>{facts}</span>', text_lines(story.why) + show)}</li>"
