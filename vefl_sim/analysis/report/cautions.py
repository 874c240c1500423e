"""What a reader of a run must not overlook: an incomplete run, nobody ordered, divergence, losses, exceeded limits."""

import shlex
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from vefl_sim.analysis.reasons import in_words, why_nobody
from vefl_sim.analysis.report.source import Source
from vefl_sim.core.errors import NotResumable
from vefl_sim.records.identity import require_same_version

_OVERRUNS = {
    "upload_slots": "upload took more slots than its worst case",
    "vehicle_energy": "CV used more energy than planned",
    "vehicle_cost": "CV charged more than planned",
    "deadline": "upload ended after its deadline",
    "round_cost": "round cost more than its budget",
}
_FEW, _MANY = 0.1, 0.25  # shares from which lost updates, and ineligible CVs or lost grants, are worth a warning


class Caution(NamedTuple):
    """A warning; `level` is "stop" (the figures mislead), "warn" or "note"."""

    level: str
    title: str
    text: str


def cautions(source: Source) -> Iterator[Caution]:
    """All warnings about a run, the gravest first."""
    yield from _incomplete(source)
    if source.summary.get("diverged"):
        text = "The loss is not a number: try a smaller learning.learning_rate."
        yield Caution("stop", "The training has diverged", text)
    if source.rounds and not source.trains_centrally:
        yield from _participation(source)
        yield from _grants(source)
        yield from _limits(source)
    yield from _origin(source)


def _incomplete(source: Source) -> Iterator[Caution]:
    resume = f"python -m vefl_sim resume {shlex.quote(str(source.run.path))}"
    rounds = len(source.rounds)
    recorded = f"This page shows what is recorded, up to {source.unit} {rounds}."
    shown = recorded if rounds else "No round is recorded yet."
    if source.state == "failed":
        yield Caution("stop", "The run failed", f"{source.failure or 'It left no message.'} {shown}")
    elif source.state == "unfinished":
        yield Caution("stop", "The run is not finished", f"{shown} Continue it with: {resume}")
    elif source.state == "running":
        yield Caution("stop", "The run is still running", f"{shown} Make the page again when it is done.")


def _participation(source: Source) -> Iterator[Caution]:
    rows, states = source.vehicles, Counter(row["state"] for row in source.vehicles)
    ineligible = Counter(row["reason"] for row in rows if row["state"] == "ineligible")
    empty = [row for row in source.rounds if not row["ordered"]]
    if empty:
        all_empty = len(empty) == len(source.rounds)
        of = f"any {source.unit}" if all_empty else f"{len(empty)} of {len(source.rounds)} {source.unit}s"
        cause = why_nobody(Counter(row["plan_status"] for row in empty), ineligible)
        yield Caution("stop" if all_empty else "warn", f"No CV got an order in {of}", f"Most often {cause}.")
    if len(rows) and states["ineligible"] >= _MANY * len(rows):
        (reason, count), total = ineligible.most_common(1)[0], states["ineligible"]
        text = f"{total:,} of {len(rows):,} decisions; in {count / total:.0%} of them {in_words(reason)}."
        yield Caution("warn", f"{total / len(rows):.0%} of the CVs in coverage were not eligible", text)
    ordered = states["lost"] + states["delivered"]
    if ordered and states["lost"] >= _FEW * ordered:
        reasons = Counter(row["reason"] for row in rows if row["state"] == "lost")
        text = "; ".join(f"{count:,} because {in_words(reason)}" for reason, count in reasons.most_common())
        yield Caution("warn", f"{states['lost'] / ordered:.0%} of the ordered updates were lost", f"{text}.")


def _grants(source: Source) -> Iterator[Caution]:
    """Many grants that were lost, and the keys on which that depends."""
    grants, radio = source.grants, source.experiment.radio
    if grants and grants.lost_share >= _MANY:
        age = "a slot" if radio.csi_delay_slots == 1 else f"{radio.csi_delay_slots} slots"
        text = (
            f"{grants.lost_text} were above the capacity of their slot, because the gNB knew the channel only as it "
            f"was {age} before (radio.csi_delay_slots). Their energy was spent in vain, and their bits had to be sent "
            f"again. A larger radio.csi_margin_db (here {radio.csi_margin_db:g}) makes lost grants rarer."
        )
        yield Caution("warn", f"{grants.lost_share:.0%} of the grants were lost", text)


def _limits(source: Source) -> Iterator[Caution]:
    summary, experiment = source.summary, source.experiment
    if broken := {law: number for law, number in summary.get("plan_breaches", {}).items() if number}:
        text = ", ".join(f"{number} × {law}" for law, number in broken.items())
        yield Caution("stop", "The scheme violates constraints", f"{text}.")
    if overruns := {name: number for name, number in summary.get("overruns", {}).items() if number}:
        text = "; ".join(f"{number:,} × {_OVERRUNS.get(name, name)}" for name, number in overruns.items())
        yield Caution("warn", "Planned worst cases were exceeded", f"{text}.")
    budget = experiment.vefl.budget * len(source.rounds)
    paid = sum(row["cost"] or 0.0 for row in source.rounds)
    if experiment.scheme.constrained and budget > 0 and paid < 0.5 * budget:
        mean = paid / len(source.rounds)
        text = f"On average {mean:,.1f} of Ξ = {experiment.vefl.budget:,g} was paid per {source.unit}."
        yield Caution("note", f"{1 - paid / budget:.0%} of the budget was left unspent", text)


def _origin(source: Source) -> Iterator[Caution]:
    try:
        require_same_version(source.run.path)
    except NotResumable:
        text = "Its tables are shown as they are; figures that this version adds may be missing."
        yield Caution("note", "Another version of vefl_sim made this run", text)
    if not source.run.is_checked:
        text = "The run has recorded no digests of them, which would show whether they were changed afterwards."
        yield Caution("note", "The tables are not checked", text)
