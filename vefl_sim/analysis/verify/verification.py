"""Verifies a run from its directory alone: digests, sums, and the constraints C1–C6 computed from its tables.

The audit of a run checks plans and slots while they are made. The verification reads only the written files and draws
the SLAs again from the seed, so that it detects edited tables and wrong sums. It does not check slots. It imports no
user-defined part, since a run may come from a stranger.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from vefl_sim.core.errors import BadInput, ExperimentError, NotResumable, RunNotFound, VeflError, first_line
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.changes import begun, with_changes
from vefl_sim.experiment.experiment import Experiment, SlaTable
from vefl_sim.experiment.part_files import part_digest
from vefl_sim.experiment.plugins import declaration, is_part, part_names
from vefl_sim.radio.access import Access
from vefl_sim.records.checkpoint import Checkpoint, Checkpoints
from vefl_sim.records.identity import Identity, package_digest, recorded_versions, require_same, require_same_version
from vefl_sim.records.run_directory import Run
from vefl_sim.records.table_parts import read_rows
from vefl_sim.schemes.sla import Agreement, draw_agreement
from vefl_sim.simulation.audit import worst_delay_ns

_TOLERANCE = 1e-9  # relative; covers sums in a different order


class Evidence:
    """The tables of a run, and the SLAs of its CVs drawn again from the seed."""

    def __init__(self, run: Run) -> None:
        """Of a run that is not done, all is taken from its newest usable checkpoint, as it may still be running."""
        self.run, self.experiment, self.is_done = run, run.experiment, run.is_done
        self.last: Checkpoint | None = None
        self.faults: list[str] = []  # of the checkpoints
        self._tables: dict[str, pd.DataFrame] = {}
        if self.is_done:
            return
        checkpoints = Checkpoints(run.path)
        try:
            self.last, self.faults = checkpoints.newest()
        except BadInput as error:
            self.last, self.faults = checkpoints.last_readable(), [*error.problems]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The figures of the run, or those up to its checkpoint."""
        return self.last.figures if self.last else self.run.summary

    def table(self, name: str) -> pd.DataFrame:
        """A table; of an unfinished run up to its checkpoint, as a failed one may have saved later rows."""
        if name not in self._tables:
            files = self.run.files(name)
            if self.last:
                files = [self.run.path / "parts" / part.file for part in self.last.tables.get(name, [])]
            if not files:
                raise RunNotFound(f"the checkpoint of {self.run.path} has no table {name}.")
            self._tables[name] = read_rows(files)
        return self._tables[name]

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """The rounds table, indexed by round."""
        return self.table("rounds").set_index("round")

    @cached_property
    def ordered(self) -> pd.DataFrame:
        """The rows of the vehicles table that have an order, joined with the SLA of their CV."""
        rows = self.table("vehicles")
        rows = rows[rows["state"].isin(["delivered", "lost"])].reset_index(drop=True)
        streams = Streams(self.experiment.run.seed)
        agreements = {cv: vars(draw_agreement(cv, self._sla(cv), streams)) for cv in rows["cv"].unique().tolist()}
        names = [field.name for field in fields(Agreement)]
        columns = pd.DataFrame([agreements[cv] for cv in rows["cv"].tolist()], rows.index, names, dtype=float)
        return rows.join(columns)

    @cached_property
    def spans(self) -> list[tuple[Experiment, pd.Index]]:
        """The experiment with the keys in force, and the rounds in which they were; one span if no key changes."""
        rounds = self.rounds["start_ns"]
        changes = [begun(self.experiment, *row) for row in zip(rounds.index.tolist(), rounds.tolist(), strict=True)]
        return [
            (with_changes(self.experiment, indices), rounds.index[[one == indices for one in changes]])
            for indices in dict.fromkeys(changes)
        ]

    def _sla(self, cv: int) -> SlaTable:
        """The terms from which those of a CV were drawn when it came into coverage for the first time."""
        if len(self.spans) < 2:
            return self.experiment.sla
        events = self.table("events")
        entered_ns = events["time_ns"][(events["kind"] == "coverage_entered") & (events["cv"] == cv)].min()
        round = max(1, int((self.rounds["start_ns"] < entered_ns).sum()))
        return next(experiment.sla for experiment, rounds in self.spans if round in rounds)


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
    for what, check in _CHECKS.items():
        if what == "C1–C6" and is_part(run.experiment.scheme.kind):
            yield Finding(what, None, "not checked: a user-defined scheme need not satisfy them")
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


def _configuration(run: Run) -> Finding:
    """Check that the run was made from its experiment; runs of other versions of vefl_sim are only noted.

    User-defined parts are read but not imported. Of one that is not found here, the recorded digest is taken.
    """
    what, notes, digests = "configuration", ["made by this version of vefl_sim"], dict[str, str]()
    try:
        require_same_version(run.path)
        for key, name in part_names(run.experiment):
            try:
                digests[name] = part_digest(key, name)
            except ExperimentError as error:
                digests[name] = str(recorded_versions(run.path)["parts"].get(name))
                notes.append(f"the part was not compared: {error}")
        require_same(run.path, Identity.recorded(run.experiment, digests))
    except NotResumable as error:
        same_source = recorded_versions(run.path).get("vefl_sim source") == package_digest()
        other_version = Finding(what, None, "made by another version of vefl_sim")
        return Finding(what, str(error)) if same_source else other_version
    except ExperimentError as error:
        return Finding(what, None, f"not checked: {error}")
    return Finding(what, None, "; ".join(notes))


def _digest(evidence: Evidence) -> str | None:
    """The fault of the tables or, of an unfinished run, of its checkpoints and the table files that they cover."""
    return evidence.run.content_fault if evidence.is_done else "; ".join(evidence.faults) or None


def _trace(evidence: Evidence) -> str | None:
    events = evidence.table("events")
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
        wrong = _differ(rounds[name], sums[name])
        if fault := _first("round", rounds.index, wrong, f"{name} differs from the vehicles table"):
            return fault
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
        computed["gnb_energy_j"] = float(evidence.table("broadcasts")["energy_j"].sum())
    wrong = [name for name, value in computed.items() if not _close(summary.get(name), value)]
    if {cause: number for cause, number in summary.get("updates_lost", {}).items() if number} != lost:
        wrong.append("updates_lost")
    return f"{', '.join(wrong)}: differs from the tables" if wrong else None


def _close(one: float | None, other: float) -> bool:
    return one is not None and bool(np.isclose(one, other, rtol=_TOLERANCE, atol=0))


def _constraints(evidence: Evidence) -> str | None:
    """C1–C6 of all planned orders; those without constraints have none."""
    faults = (_constraints_of(evidence, *span) for span in evidence.spans if span[0].scheme.constrained)
    return "; ".join(filter(None, faults)) or None


def _constraints_of(evidence: Evidence, experiment: Experiment, numbers: pd.Index) -> str | None:
    scheme, vefl, rounds, rows = experiment.scheme, experiment.vefl, evidence.rounds.loc[numbers], evidence.ordered
    rows = rows[rows["round"].isin(numbers)]
    cost, worst_j = rows.groupby("round")["worst_cost"].sum(), rows.groupby(["round", "cv"])["worst_j"].transform("sum")
    cpu_range = rows["cpu_min_hz"] * (1 - _TOLERANCE), rows["cpu_max_hz"] * (1 + _TOLERANCE)
    right_range = rows["iterations"].between(1, vefl.max_local_iterations) & rows["cpu_hz"].between(*cpu_range)
    of_orders = {
        "C2 or C3: it needs more time than the round or its sojourn bound allows": _worst_ns(evidence, experiment, rows)
        > rows["limit_ns"],
        "C4: it needs more energy than e_bud": worst_j > rows["energy_budget_j"] * (1 + _TOLERANCE),
        "C5: its planned cost is not φ·e + φ̄": _differ(rows["worst_cost"], _charge(rows, rows["worst_j"])),
        "C6: iterations or CPU frequency are out of range": ~right_range,
    }
    of_rounds = {f"C5: the plan costs more than the budget Ξ = {vefl.budget:g}": cost > vefl.budget * (1 + _TOLERANCE)}
    if declaration("scheme.kind", scheme.kind, "selects", False):  # else it may order all CVs
        of_rounds[f"C1: more than |C_k| = {scheme.selected} CVs have an order"] = rounds["ordered"] > scheme.selected
    faults = [_first("round", wrong.index, wrong, sentence) for sentence, wrong in of_rounds.items()]
    faults += [_first_order(rows, wrong, sentence) for sentence, wrong in of_orders.items()]
    return "; ".join(filter(None, faults)) or None


def _worst_ns(evidence: Evidence, experiment: Experiment, rows: pd.DataFrame) -> pd.Series:
    """Time from each of these orders to the end of its upload in the worst case."""
    ordered_ns, trained_ns, slots = (rows[name].astype(np.int64) for name in ("ordered_ns", "train_ns", "worst_slots"))
    if experiment.downlink.kind == "broadcast":
        sent = evidence.table("broadcasts")
        model_ns = ordered_ns.map((sent["end_ns"] - sent["ordered_ns"]).set_axis(sent["ordered_ns"]))
        trained_ns += model_ns.fillna(0).astype(np.int64)
    columns = (column.to_numpy() for column in (ordered_ns, trained_ns, slots))
    return pd.Series(worst_delay_ns(Access.of(experiment), experiment.slots, *columns), rows.index)


def _money(evidence: Evidence) -> str | None:
    rows = evidence.ordered
    charge = _charge(rows, rows["compute_j"] + rows["transmit_j"])
    return _first_order(rows, _differ(rows["paid"], charge), "it was not paid φ·e + φ̄")


def _charge(rows: pd.DataFrame, joules: pd.Series) -> pd.Series:
    return rows["price_per_joule"] * joules + rows["base_fee"]


_CHECKS: dict[str, Callable[[Evidence], str | None]] = {
    "content": _digest,
    "trace": _trace,
    "rounds": _rounds,
    "summary": _summary,
    "money": _money,
    "C1–C6": _constraints,
}


def _differ(one: pd.Series, other: pd.Series) -> pd.Series:
    """Rows in which two columns differ by more than rounding."""
    a, b = one.astype(float), other.astype(float)
    return (a - b).abs() > _TOLERANCE * np.maximum(np.maximum(a.abs(), b.abs()), 1.0)


def _first(name: str, index: pd.Index | pd.Series, wrong: pd.Series, sentence: str) -> str | None:
    """The first wrong entry of an index (rounds, slots, …) as a sentence; None if no entry is wrong."""
    broken = index[wrong.fillna(True).to_numpy(bool)].tolist()
    return f"{name} {broken[0]}: {sentence}" if broken else None


def _first_order(orders: pd.DataFrame, wrong: pd.Series, sentence: str) -> str | None:
    """The first wrong order as a sentence with its round and CV; None if none is wrong."""
    return _first("round", orders["round"].astype(str) + ", CV " + orders["cv"].astype(str), wrong, sentence)


def finding_lines(findings: Sequence["Finding"]) -> Iterator[str]:
    """One printable line per finding."""
    for finding in findings:
        result = f"WRONG: {finding.fault}" if finding.fault else finding.note or "ok"
        yield f"{finding.what:16}{result}"
