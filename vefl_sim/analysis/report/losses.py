"""The lost updates that cost most."""

from collections.abc import Iterator
from dataclasses import dataclass

from vefl_sim.analysis.reasons import in_words
from vefl_sim.analysis.report.markup import button, fold, html, text_lines
from vefl_sim.analysis.report.source import Source

_SHOWN = 10


@dataclass(frozen=True)
class Loss:
    """An update that was paid for and never arrived whole."""

    round: int
    cv: int
    time_s: float
    reason: str
    paid: float
    joules: float
    sent: float | None  # share of its bits that arrived
    why: list[str]


def worst_losses(source: Source) -> list[Loss]:
    """The ten lost updates for which most was paid, the costliest first."""
    lost = [row for row in source.vehicles if row["state"] == "lost" and row["ordered_ns"] is not None]
    lost.sort(key=lambda row: (-(row["paid"] or 0.0), row["round"], row["cv"]))
    return [
        Loss(
            round=row["round"],
            cv=row["cv"],
            time_s=(row["ordered_ns"] + (row["delay_ns"] or 0)) / 1e9,
            reason=in_words(row["reason"]),
            paid=row["paid"] or 0.0,
            joules=(row["compute_j"] or 0.0) + (row["transmit_j"] or 0.0),
            sent=row["delivered_fraction"],
            why=source.explanations.why(row["cv"], row["round"]) if row["round"] in source.explanations.started else [],
        )
        for row in lost[:_SHOWN]
    ]


def losses_html(losses: list[Loss], all_lost: int, unit: str) -> str:
    """The losses as a list; each can be opened to read why, and shown on the map. `unit`: "round" or "window"."""
    if not losses:
        return "<p class='quiet'>No update was lost.</p>"
    shown = (
        f"The {len(losses)} costliest of {all_lost:,} lost updates" if all_lost > len(losses) else "All lost updates"
    )
    items = "".join(_item(loss, unit) for loss in losses)
    return f"<p class='quiet'>{shown}, by what was paid for them.</p><ol class='losses'>{items}</ol>"


def _item(loss: Loss, unit: str) -> str:
    facts = "".join(f"<span>{html(fact)}</span>" for fact in _facts(loss))
    title = f"<span class='who'>CV {html(loss.cv)}, {unit} {html(loss.round)}</span> <span>{html(loss.reason)}</span>"
    show = button("Show on the map", "jump", cv=loss.cv, time=round(loss.time_s * 1e3), round=loss.round)
    return f"<li>{fold(f'{title}<span class=facts>{facts}</span>', text_lines(loss.why) + show)}</li>"


def _facts(loss: Loss) -> Iterator[str]:
    yield f"paid {loss.paid:,.2f}"
    yield f"{loss.joules:,.2f} J"
    if loss.sent is not None:
        yield f"{min(loss.sent, 0.999):.1%} sent"
