"""The updates that say most about a run: the costliest losses, or where none was lost, the closest calls."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from vefl_sim.analysis.reasons import in_words
from vefl_sim.analysis.report.data import all_orders
from vefl_sim.analysis.report.document import Section
from vefl_sim.analysis.report.markup import button, fold, html, text_lines
from vefl_sim.analysis.report.source import Source

_SHOWN = 10


class _Story(NamedTuple):
    round: int
    cv: int
    time_ms: float  # when it was lost or received
    outcome: str
    facts: Sequence[str]


def stories_section(source: Source) -> Section:
    """The ten lost updates for which most was paid; if none was lost, the ten with the least time to spare.

    Each can be opened to read why, and shown on the map, which opens with the first.
    """
    lost = [row for row in source.vehicles if row["state"] == "lost" and row["ordered_ns"] is not None]
    lost.sort(key=lambda row: (-(row["paid"] or 0.0), row["round"], row["cv"]))
    received = [order for order in all_orders(source) if order["state"] == "delivered"]
    received.sort(key=lambda order: (_spare_ms(order), -(order["slots"] or 0), order["round"], order["cv"]))
    if lost:
        which = f"The {_SHOWN} costliest of {len(lost):,} lost updates" if len(lost) > _SHOWN else "All lost updates"
        title, lead = "Worst losses", f"{which}, by what was paid for them."
        stories = [_loss(row) for row in lost[:_SHOWN]]
    else:
        title, lead = "Closest calls", "No update was lost."
        lead += " These had the least time left before their deadline." * bool(received)
        slot_ms = source.experiment.slots.slot_ns / 1e6
        stories = [_close_call(order, slot_ms) for order in received[:_SHOWN]]
    items = "".join(_item(source, story) for story in stories)
    return Section("losses", title, f"<ol class='losses'>{items}</ol>" if items else "", lead)


def _loss(row: dict[str, Any]) -> _Story:
    """A lost update, from a row of the vehicles table."""
    facts = [f"paid {row['paid'] or 0.0:,.2f}", f"{(row['compute_j'] or 0.0) + (row['transmit_j'] or 0.0):,.2f} J"]
    if row["delivered_fraction"] is not None:
        facts.append(f"{min(row['delivered_fraction'], 0.999):.1%} sent")
    time_ms = (row["ordered_ns"] + (row["delay_ns"] or 0)) / 1e6
    return _Story(row["round"], row["cv"], time_ms, in_words(row["reason"]), facts)


def _close_call(order: dict[str, Any], slot_ms: float) -> _Story:
    """A delivered update, from its order."""
    spare_ms = _spare_ms(order)
    outcome = f"delivered {spare_ms:,.1f} ms before its deadline"
    if math.isinf(spare_ms):
        outcome = "delivered, without a deadline"
    elif spare_ms < slot_ms:
        outcome = "delivered in the last slot before its deadline"
    facts = [f"paid {order['paid'] or 0.0:,.2f}", f"{order['joules'] or 0.0:,.2f} J"]
    return _Story(order["round"], order["cv"], order["ended"], outcome, facts)


def _spare_ms(order: dict[str, Any]) -> float:
    """Time between the end of an upload and its deadline."""
    return math.inf if order["deadline"] is None else float(order["deadline"] - order["ended"])


def _item(source: Source, story: _Story) -> str:
    """A story with the text of `trace --why`, which is empty for a round that the trace does not have."""
    explanations = source.explanations
    why = explanations.why(story.cv, story.round) if story.round in explanations.started else []
    facts = "".join(f"<span>{html(fact)}</span>" for fact in story.facts)
    who = f"<span class='who'>CV {html(story.cv)}, {source.unit} {html(story.round)}</span>"
    show = button("Show on the map", "jump", cv=story.cv, time=round(story.time_ms), round=story.round)
    title = f"{who} <span>{html(story.outcome)}</span><span class=facts>{facts}</span>"
    return f"<li>{fold(title, text_lines(why) + show)}</li>"
