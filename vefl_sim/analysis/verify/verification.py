"""A second look at a run, from nothing but its directory: digests, and the laws of the audit from its tables.

The audit of a run sees plans and slots as they happen. This one knows only what was written, and draws the SLAs again
from the seed, so that a table that somebody has changed, or a figure that was added up wrongly, shows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vefl_sim.analysis.verify.evidence import Evidence
from vefl_sim.analysis.verify.slot_books import SlotBooks, orders_by_place
from vefl_sim.core.errors import NotResumable, VeflError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import is_part
from vefl_sim.records.checkpoint import Checkpoints
from vefl_sim.records.identity import package_digest, recorded_versions, require_same, require_same_version
from vefl_sim.records.run_directory import Run

_SLOTS = "C7–C12"
_TOLERANCE = 1e-9  # relative: sums in another order


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    fault: str | None  # what is wrong with it
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether it is as it should be."""
        return self.fault is None


def verify(run: Run) -> Iterator[Finding]:
    """Everything that can be checked, one after the other."""
    evidence = Evidence(run)
    yield _configuration(run)
    if not run.is_done and not Checkpoints(run.path).last_readable():
        yield Finding("content", None, "nothing to verify: the run has not reached a checkpoint yet")
        return
    if not run.is_done:
        yield Finding("so far", None, f"{run.summary['rounds']} rounds, up to the last checkpoint")
    for what, look in (_BOOKS | _LAWS).items():
        if why := _not_looked_at(what, evidence.experiment):
            yield Finding(what, None, why)
            continue
        try:
            yield Finding(what, look(evidence))
        except VeflError as error:
            yield Finding(what, str(error))


def _not_looked_at(what: str, experiment: Experiment) -> str | None:
    if what in _LAWS and is_part(experiment.scheme.kind):
        return "a scheme of your own is not bound by it"
    if what == _SLOTS and experiment.trace.slots == "off":
        return 'no slots were recorded (trace.slots = "off"); the run itself has audited them'
    return None


def _configuration(run: Run) -> Finding:
    """Whether this is the package that made it, with this experiment. What follows holds for others, too."""
    what = "configuration"
    try:
        require_same_version(run.path)
        require_same(run.path, run.experiment)
    except NotResumable as error:
        ours = recorded_versions(run.path).get("vefl_sim source") == package_digest()
        return Finding(what, str(error)) if ours else Finding(what, None, "made by another version of vefl_sim")
    return Finding(what, None, "made by this version")


def _digest(evidence: Evidence) -> str | None:
    run = evidence.run
    if not run.is_done:
        return _checkpoint(run)
    digest, marked = run.content_digest(), (run.path / "DONE").read_text(encoding="utf-8").strip()
    message = run.summary.get("content_digest", "nothing")
    return None if digest == message == marked else f"the tables have {digest[:16]}, the summary says {message[:16]}"


def _checkpoint(run: Run) -> str | None:
    try:
        _, faults = Checkpoints(run.path).newest()
    except NotResumable as error:
        return str(error)
    return "; ".join(faults) or None


def _trace(evidence: Evidence) -> str | None:
    events = evidence.events
    if not np.array_equal(events["id"], np.arange(1, len(events) + 1)):
        return "the events are not numbered 1, 2, 3, …"
    causes = events["cause"].dropna()
    if (causes >= events["id"][causes.index]).any() or (causes < 1).any():
        return "an event comes before its cause"
    message = events[events["round"] <= evidence.rounds.index.max()]  # of later windows orders may be under way
    ends = message[message["kind"].isin(["upload_received", "update_lost"])]
    orders = message[message["kind"] == "training_ordered"]
    pairs = [sorted(zip(rows["round"].tolist(), rows["cv"].tolist(), strict=True)) for rows in (orders, ends)]
    return None if pairs[0] == pairs[1] else "an order has not exactly one end"


def _rounds(evidence: Evidence) -> str | None:
    rounds, ordered = evidence.rounds, evidence.ordered
    by_round = ordered.assign(delivered=ordered["state"] == "delivered").groupby("round")
    sums = pd.DataFrame(
        {
            "ordered": by_round.size(),
            "delivered": by_round["delivered"].sum(),
            "planned_cost": by_round["worst_cost"].sum(),
            "cost": by_round["paid"].sum(),
            "energy_j": by_round["compute_j"].sum() + by_round["transmit_j"].sum(),
        }
    ).reindex(rounds.index, fill_value=0)
    for name in sums:
        if fault := _first(rounds.index, _differ(rounds[name], sums[name])):
            return f"round {fault}: {name} is not that of its vehicles"
    return None if rounds.index.tolist() == list(range(1, len(rounds) + 1)) else "a round is missing"


def _summary(evidence: Evidence) -> str | None:
    summary, rounds, ordered = evidence.run.summary, evidence.rounds, evidence.ordered
    lost = ordered["reason"][ordered["state"] == "lost"].value_counts().to_dict()
    found = {
        "rounds": len(rounds),
        "updates_ordered": len(ordered),
        "updates_delivered": int((ordered["state"] == "delivered").sum()),
        "cost": float(rounds["cost"].sum()),
        "energy_j": float(rounds["energy_j"].sum()),
    }
    wrong = [name for name, value in found.items() if not _close(summary.get(name), value)]
    if {cause: number for cause, number in summary.get("updates_lost", {}).items() if number} != lost:
        wrong.append("updates_lost")
    return f"{', '.join(wrong)}: not what the tables say" if wrong else None


def _close(one: float | None, other: float) -> bool:
    return one is not None and bool(np.isclose(one, other, rtol=_TOLERANCE, atol=0))


def _c1(evidence: Evidence) -> str | None:
    scheme = evidence.experiment.scheme
    if scheme.kind not in ("pdpc", "random"):
        return None  # the others may order everybody
    too_many = evidence.rounds["ordered"] > scheme.selected
    fault = _first(evidence.rounds.index, too_many)
    return f"round {fault}: more than |C_k| = {scheme.selected} CVs" if fault else None


def _c2_c3(evidence: Evidence) -> str | None:
    rows = evidence.planned
    worst_ns = rows["train_ns"] + rows["worst_slots"] * evidence.experiment.slots.slot_ns
    return _named(rows, worst_ns > rows["limit_ns"], "needs longer than the round or its sojourn bound")


def _c4(evidence: Evidence) -> str | None:
    rows = evidence.planned
    worst_j = rows.groupby(["round", "cv"])["worst_j"].transform("sum")
    return _named(rows, worst_j > rows["energy_budget_j"] * (1 + _TOLERANCE), "needs more than e_bud")


def _c5(evidence: Evidence) -> str | None:
    rows, budget = evidence.planned, evidence.experiment.vefl.budget
    expected = rows["price_per_joule"] * rows["worst_j"] + rows["base_fee"]
    if fault := _named(rows, _differ(rows["worst_cost"], expected), "was not planned at φ·e + φ̄"):
        return fault
    cost = rows.groupby("round")["worst_cost"].sum()
    over = _first(cost.index, cost > budget * (1 + _TOLERANCE))
    return f"round {over}: the plan costs more than Ξ = {budget:g}" if over else None


def _c6(evidence: Evidence) -> str | None:
    rows, most = evidence.planned, evidence.experiment.vefl.max_local_iterations
    whole = (rows["iterations"] >= 1) & (rows["iterations"] <= most)
    fast = rows["cpu_hz"].between(rows["cpu_min_hz"] * (1 - _TOLERANCE), rows["cpu_max_hz"] * (1 + _TOLERANCE))
    return _named(rows, ~(whole & fast), "has iterations or a frequency out of range")


def _money(evidence: Evidence) -> str | None:
    rows = evidence.ordered
    charge = rows["price_per_joule"] * (rows["compute_j"] + rows["transmit_j"]) + rows["base_fee"]
    return _named(rows, _differ(rows["paid"], charge), "was not paid φ·e + φ̄")


def _slots(evidence: Evidence) -> str | None:
    books = SlotBooks.of(evidence)
    if books.fault or evidence.experiment.trace.slots != "full":
        return books.fault
    rows = orders_by_place(evidence).assign(sent_j=books.transmit_j).dropna(subset=["transmit_j"])
    return _named(rows, _differ(rows["transmit_j"], rows["sent_j"]), "sent with another energy")


_BOOKS: dict[str, Callable[[Evidence], str | None]] = {
    "content": _digest,
    "trace": _trace,
    "rounds": _rounds,
    "summary": _summary,
    "money": _money,
    _SLOTS: _slots,
}
_LAWS: dict[str, Callable[[Evidence], str | None]] = {
    "C1": _c1,
    "C2, C3": _c2_c3,
    "C4": _c4,
    "C5": _c5,
    "C6": _c6,
}


def _differ(one: pd.Series, other: pd.Series) -> pd.Series:
    """Where two columns are not the same number, but for rounding."""
    a, b = one.astype(float), other.astype(float)
    return (a - b).abs() > _TOLERANCE * np.maximum(np.maximum(a.abs(), b.abs()), 1.0)


def _named(rows: pd.DataFrame, wrong: pd.Series, sentence: str) -> str | None:
    """The first row that is wrong, in words."""
    broken = rows[wrong.fillna(True).astype(bool)]
    return None if broken.empty else f"round {broken['round'].iloc[0]}: CV {broken['cv'].iloc[0]} {sentence}"


def _first(index: pd.Index, wrong: pd.Series) -> int | None:
    broken = index[wrong.fillna(True).astype(bool)]
    return int(broken[0]) if len(broken) else None


def finding_lines(findings: Sequence["Finding"]) -> Iterator[str]:
    """What was verified, a line each."""
    for finding in findings:
        message = f"WRONG: {finding.fault}" if finding.fault else finding.note or "holds"
        yield f"{finding.what:16}{message}"
