"""Verifies a run from its directory alone: digests, sums, and the constraints C1–C12 computed from its tables.

The audit of a run checks plans and slots while they are made. The verification reads only the written files and draws
the SLAs again from the seed, so that it detects edited tables and wrong sums. It imports no user-defined part, since a
run may come from a stranger.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vefl_sim.analysis.verify.evidence import Evidence
from vefl_sim.analysis.verify.radio import fault_of_broadcasts, fault_of_outages, worst_delay_ns
from vefl_sim.analysis.verify.slot_books import SlotBooks, orders_by_key
from vefl_sim.analysis.verify.uploads import fault_of_uploads
from vefl_sim.core.errors import ExperimentError, NotResumable, RunNotFound, VeflError, first_line
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.part_files import part_digest
from vefl_sim.experiment.plugins import declaration, is_part, part_names
from vefl_sim.records.identity import Identity, package_digest, recorded_versions, require_same, require_same_version
from vefl_sim.records.run_directory import Run

_SLOTS = "C7–C12"
_TOLERANCE = 1e-9  # relative; covers sums in a different order


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    what: str
    fault: str | None  # what is wrong; None if the check passed
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the check found no fault."""
        return self.fault is None


def verify(run: Run) -> Iterator[Finding]:
    """Run all checks; a run that finishes meanwhile, which removes its checkpoints, is verified again."""
    was_done = run.is_done
    findings = [*_findings(run)]
    yield from findings if was_done or not run.is_done else _findings(run)


def _findings(run: Run) -> Iterator[Finding]:
    evidence = Evidence(run)
    yield _configuration(run)
    if not evidence.is_done and not evidence.last:
        yield Finding("content", run.loss, "nothing to verify: the run has no checkpoint yet")
        return
    if evidence.last:
        rounds = evidence.summary.get("rounds")
        yield Finding("so far", None, f"{rounds} rounds up to the last checkpoint are verified")
    uploads = {"uploads": fault_of_uploads} if evidence.experiment.trace.slots == "uploads" else {}
    outages = {"outages": fault_of_outages} if evidence.experiment.radio.csi_delay_slots else {}
    downlink = {"broadcasts": fault_of_broadcasts} if evidence.experiment.downlink.kind == "broadcast" else {}
    for what, check in (_CONSISTENCY | uploads | outages | downlink | _CONSTRAINTS).items():
        if reason := _not_checked(what, evidence.experiment):
            yield Finding(what, None, reason)
            continue
        try:
            yield Finding(what, check(evidence))
        except VeflError as error:
            yield Finding(what, str(error))
        except Exception as error:  # the files may hold anything, and no run has written what a check cannot compute
            yield Finding(what, f"the files do not allow this check ({type(error).__name__}: {first_line(error)})")


@contextmanager
def blaming_damage(run: Run) -> Iterator[None]:
    """Turn an error in the block into one sentence if the run is damaged; it is a bug of ours if the run is not."""
    try:
        yield
    except VeflError:
        raise
    except Exception as error:
        if fault := next((finding for finding in verify(run) if not finding.passed), None):
            raise RunNotFound(f"{run.path} is damaged ({fault.what}: {fault.fault}).") from error
        raise


def _not_checked(what: str, experiment: Experiment) -> str | None:
    """Why a check does not apply to the experiment; None if it applies."""
    if what in _CONSTRAINTS and is_part(experiment.scheme.kind):
        return "not checked: a user-defined scheme need not satisfy it"
    if what == _SLOTS and experiment.trace.slots in ("off", "uploads"):
        recorded = f'trace.slots = "{experiment.trace.slots}"'
        return f"not checked: no slots were recorded ({recorded}); the run itself audited them"
    return None


def _configuration(run: Run) -> Finding:
    """Check that the run was made from its experiment; runs of other versions of vefl_sim are only noted."""
    what = "configuration"
    try:
        require_same_version(run.path)
        digests, missing = _part_digests(run)
        require_same(run.path, Identity.recorded(run.experiment, digests))
    except NotResumable as error:
        same_source = recorded_versions(run.path).get("vefl_sim source") == package_digest()
        other_version = Finding(what, None, "made by another version of vefl_sim")
        return Finding(what, str(error)) if same_source else other_version
    except ExperimentError as error:
        return Finding(what, None, f"not checked: {error}")
    return Finding(what, None, "; ".join(["made by this version of vefl_sim", *missing]))


def _part_digests(run: Run) -> tuple[dict[str, str], list[str]]:
    """Digests of the user-defined parts, which are read but not imported, and a note on each that is not found here.

    For these the digest that the run recorded is taken.
    """
    recorded = dict(recorded_versions(run.path).get("parts", {}))
    digests, notes = dict[str, str](), list[str]()
    for key, name in part_names(run.experiment):
        try:
            digests[name] = part_digest(key, name)
        except ExperimentError as error:
            digests[name] = str(recorded.get(name))
            notes.append(f"the part was not compared: {error}")
    return digests, notes


def _digest(evidence: Evidence) -> str | None:
    """The fault of the tables or, of an unfinished run, of its checkpoints and the table files that they cover."""
    return evidence.run.content_fault if evidence.is_done else "; ".join(evidence.faults) or None


def _trace(evidence: Evidence) -> str | None:
    events = evidence.events
    if not np.array_equal(events["id"], np.arange(1, len(events) + 1)):
        return "the event ids are not 1, 2, 3, …"
    causes = events["cause"].dropna()
    if (causes >= events["id"][causes.index]).any() or (causes < 1).any():
        return "an event comes before its cause"
    closed = events[events["round"] <= evidence.rounds.index.max()]  # orders of later windows may be unfinished
    ends = closed[closed["kind"].isin(["upload_received", "update_lost"])]
    orders = closed[closed["kind"] == "training_ordered"]
    pairs = [sorted(zip(rows["round"].tolist(), rows["cv"].tolist(), strict=True)) for rows in (orders, ends)]
    return None if pairs[0] == pairs[1] else "an order does not have exactly one upload_received or update_lost"


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
        if fault := _first_index(rounds.index, _differ(rounds[name], sums[name])):
            return f"round {fault}: {name} differs from the vehicles table"
    return None if rounds.index.tolist() == list(range(1, len(rounds) + 1)) else "a round is missing"


def _summary(evidence: Evidence) -> str | None:
    summary, rounds, ordered = evidence.summary, evidence.rounds, evidence.ordered
    lost = ordered["reason"][ordered["state"] == "lost"].value_counts().to_dict()
    computed = {
        "rounds": len(rounds),
        "updates_ordered": len(ordered),
        "updates_delivered": int((ordered["state"] == "delivered").sum()),
        "cost": float(rounds["cost"].sum()),
        "energy_j": float(rounds["energy_j"].sum()),
    }
    if evidence.experiment.downlink.kind == "broadcast":
        computed["gnb_energy_j"] = float(evidence.broadcasts["energy_j"].sum())
    wrong = [name for name, value in computed.items() if not _close(summary.get(name), value)]
    if {cause: number for cause, number in summary.get("updates_lost", {}).items() if number} != lost:
        wrong.append("updates_lost")
    return f"{', '.join(wrong)}: differs from the tables" if wrong else None


def _close(one: float | None, other: float) -> bool:
    return one is not None and bool(np.isclose(one, other, rtol=_TOLERANCE, atol=0))


def _c1(evidence: Evidence) -> str | None:
    scheme = evidence.experiment.scheme
    if not declaration("scheme.kind", scheme.kind, "selects", False):
        return None  # the scheme may order all CVs
    too_many = evidence.rounds["ordered"] > scheme.selected
    fault = _first_index(evidence.rounds.index, too_many)
    return f"round {fault}: more than |C_k| = {scheme.selected} CVs have an order" if fault else None


def _c2_c3(evidence: Evidence) -> str | None:
    rows, worst_ns = evidence.planned, worst_delay_ns(evidence)
    return _first_fault(rows, worst_ns > rows["limit_ns"], "needs more time than the round or its sojourn bound allows")


def _c4(evidence: Evidence) -> str | None:
    rows = evidence.planned
    worst_j = rows.groupby(["round", "cv"])["worst_j"].transform("sum")
    return _first_fault(rows, worst_j > rows["energy_budget_j"] * (1 + _TOLERANCE), "needs more energy than e_bud")


def _c5(evidence: Evidence) -> str | None:
    rows, budget = evidence.planned, evidence.experiment.vefl.budget
    expected = rows["price_per_joule"] * rows["worst_j"] + rows["base_fee"]
    if fault := _first_fault(rows, _differ(rows["worst_cost"], expected), "has a planned cost other than φ·e + φ̄"):
        return fault
    cost = rows.groupby("round")["worst_cost"].sum()
    over = _first_index(cost.index, cost > budget * (1 + _TOLERANCE))
    return f"round {over}: the plan costs more than the budget Ξ = {budget:g}" if over else None


def _c6(evidence: Evidence) -> str | None:
    rows, most = evidence.planned, evidence.experiment.vefl.max_local_iterations
    allowed = (rows["iterations"] >= 1) & (rows["iterations"] <= most)
    in_range = rows["cpu_hz"].between(rows["cpu_min_hz"] * (1 - _TOLERANCE), rows["cpu_max_hz"] * (1 + _TOLERANCE))
    return _first_fault(rows, ~(allowed & in_range), "has a number of iterations or a CPU frequency out of range")


def _money(evidence: Evidence) -> str | None:
    rows = evidence.ordered
    charge = rows["price_per_joule"] * (rows["compute_j"] + rows["transmit_j"]) + rows["base_fee"]
    return _first_fault(rows, _differ(rows["paid"], charge), "was not paid φ·e + φ̄")


def _slots(evidence: Evidence) -> str | None:
    books = SlotBooks.of(evidence)
    if books.fault or evidence.experiment.trace.slots != "full":
        return books.fault
    rows = orders_by_key(evidence).assign(sent_j=books.transmit_j).dropna(subset=["transmit_j"])
    return _first_fault(
        rows,
        _differ(rows["transmit_j"], rows["sent_j"]),
        "has a transmit energy that differs from its slots",
    )


_CONSISTENCY: dict[str, Callable[[Evidence], str | None]] = {
    "content": _digest,
    "trace": _trace,
    "rounds": _rounds,
    "summary": _summary,
    "money": _money,
    _SLOTS: _slots,
}
_CONSTRAINTS: dict[str, Callable[[Evidence], str | None]] = {
    "C1": _c1,
    "C2, C3": _c2_c3,
    "C4": _c4,
    "C5": _c5,
    "C6": _c6,
}


def _differ(one: pd.Series, other: pd.Series) -> pd.Series:
    """Rows in which two columns differ by more than rounding."""
    a, b = one.astype(float), other.astype(float)
    return (a - b).abs() > _TOLERANCE * np.maximum(np.maximum(a.abs(), b.abs()), 1.0)


def _first_fault(rows: pd.DataFrame, wrong: pd.Series, sentence: str) -> str | None:
    """The first wrong row as a sentence with its round and CV; None if no row is wrong."""
    broken = rows[wrong.fillna(True).astype(bool)]
    return None if broken.empty else f"round {broken['round'].iloc[0]}: CV {broken['cv'].iloc[0]} {sentence}"


def _first_index(index: pd.Index, wrong: pd.Series) -> int | None:
    """The first round that is wrong; None if there is none."""
    broken = index[wrong.fillna(True).astype(bool)]
    return int(broken[0]) if len(broken) else None


def finding_lines(findings: Sequence["Finding"]) -> Iterator[str]:
    """One printable line per finding."""
    for finding in findings:
        result = f"WRONG: {finding.fault}" if finding.fault else finding.note or "ok"
        yield f"{finding.what:16}{result}"
