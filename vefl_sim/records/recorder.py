"""Records the events, rounds, positions and slots of a run as rows of tables."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from vefl_sim.core.clock import SlotGrid, Timing, to_ns
from vefl_sim.core.state import State, from_state, state_of
from vefl_sim.core.tables import data_frame, digest_of_tables
from vefl_sim.experiment.complaints import shown
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.scene import Scene
from vefl_sim.optimize.rat.allocate import AllocationStatus
from vefl_sim.protocol import trace as events
from vefl_sim.protocol.gnb import Arrival
from vefl_sim.protocol.mac import Burst
from vefl_sim.protocol.messages import Decision, OrderOutcome, RoundReport, TrainOrder
from vefl_sim.protocol.trace import Noted, Trace
from vefl_sim.records.schemas import SCHEMAS
from vefl_sim.records.table_parts import NOT_CONTENT, PartFile, TableParts
from vefl_sim.schemes.observation import Observation, sojourn_ns

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
BIN_NS = 50_000_000  # of the table `uploads`: a whole number of slots in every numerology
_SAMPLED_SLOTS = 100  # `trace.slots = "sampled"`: every 100th slot
_STATUSES = np.array([status.name.lower() for status in AllocationStatus])


class Recorder:
    """Keeps the tables of one run, in memory or as a series of part files each."""

    def __init__(self, experiment: Experiment, trace: Trace, directory: Path | None = None) -> None:
        """Listen to a trace; `directory` is the folder of the part files, None: the tables are kept in memory."""
        self._slot_every = {"sampled": _SAMPLED_SLOTS, "full": 1}.get(experiment.trace.slots, 0)
        recorded = {
            "slots": self._slot_every > 0,
            "uploads": experiment.trace.slots == "uploads",
            "outages": experiment.radio.csi_delay_slots > 0,
            "broadcasts": experiment.downlink.kind == "broadcast",
        }
        self._tables = {name: TableParts(directory, name) for name in SCHEMAS if recorded.get(name, True)}
        self._mobility_every_ns, self._mobility_due_ns = to_ns(experiment.trace.mobility_every_s), 0
        self._bins = UploadBins(experiment.slots, lambda row: self._tables["uploads"].append(row))
        trace.on(Noted, lambda noted: self._tables["events"].append(event_row(noted)))
        trace.on(Scene, self._record_scene)
        if recorded["slots"]:
            trace.on(Burst, self._record_slots)
        if recorded["uploads"]:
            trace.on(Burst, self._bins.add)
            trace.on(Arrival, lambda arrival: self._bins.receive(arrival.cv, arrival.bits))
        trace.on(RoundReport, self._record_round)
        trace.on(Timing, lambda timing: self._tables["timings"].append(vars(timing)))

    def _record_scene(self, scene: Scene) -> None:
        """Record the positions of all vehicles, once per `trace.mobility_every_s`."""
        if scene.time_ns >= self._mobility_due_ns:
            self._mobility_due_ns += self._mobility_every_ns
            times = {"time_ns": np.full(len(scene.vehicle), scene.time_ns)}
            self._tables["mobility"].extend(vars(scene) | times)

    def _record_slots(self, burst: Burst) -> None:
        """Record what each CV with a pRB was allocated in the slots of a burst, or in every 100th slot."""
        log, slots = burst.log, burst.first_slot + np.arange(burst.slots)
        index, row = np.nonzero((log.prbs[: burst.slots] != 0) & (slots % self._slot_every == 0)[:, None])
        gap = log.gap[index]
        columns = {name: getattr(log, name)[index, row] for name in ("prbs", "power_w", "rate_bps", "bits_left")} | {
            "slot": slots[index],
            "cv": np.array([upload.cv for upload in burst.uploads])[row],
            "gap": np.where(np.isnan(gap), None, gap),  # type: ignore[call-overload]  # an array of objects
            "status": _STATUSES[log.outcome[index]],
        }
        if index.size:
            self._tables["slots"].extend(columns)

    def _record_round(self, report: RoundReport) -> None:
        """Record a finished round and the CVs that were in coverage at its start."""
        broadcasts = (decision.broadcast for decision in report.decisions if decision.broadcast)
        rows = {
            "rounds": [round_row(report)],
            "vehicles": vehicle_rows(report),
            "outages": map(_outage_row, report.outcomes),
            "broadcasts": ({"round": report.round} | vars(broadcast) for broadcast in broadcasts),
        }
        for name, added in rows.items():
            for row in added if name in self._tables else ():
                self._tables[name].append(row)

    def table(self, name: str) -> "pd.DataFrame":
        """A table with all rows so far; KeyError if it is not recorded."""
        return data_frame(self._tables[name].table())

    def content_digest(self) -> str:
        """Digest of all rows so far that a repeated run must reproduce exactly."""
        tables = {name: table.table() for name, table in self._tables.items() if name not in NOT_CONTENT}
        return digest_of_tables(tables)

    def commit(self) -> dict[str, list[PartFile]]:
        """Write all rows so far to disk; return the part files that hold them, by table."""
        return {name: table.commit() for name, table in self._tables.items()}

    def compact(self, directory: Path) -> None:
        """At the end of the run: write one file per table."""
        for table in self._tables.values():
            table.compact(directory)

    def salvage(self, directory: Path) -> None:
        """Like `compact`, after an error: rows so far are written, and tables that cannot be completed are skipped."""
        self.close()
        for table in self._tables.values():
            with suppress(Exception):  # the error that stopped the run is the one to report
                table.compact(directory)

    def state(self) -> State:
        """What is in no part file: the time of the next record of positions, and the current upload bin."""
        return {"mobility_due_ns": self._mobility_due_ns, "uploads": self._bins.state()}

    def restore(self, state: State) -> None:
        """Restore the time of the next record of positions, and the current upload bin, from a checkpoint."""
        self._mobility_due_ns = state["mobility_due_ns"]
        self._bins.restore(state["uploads"])

    def close(self) -> None:
        """At the end of the run: add the rows of the current upload bin."""
        self._bins.close()

    def continue_after(self, parts: dict[str, list[PartFile]]) -> None:
        """Append new rows after those in these part files, given by table."""
        for name, table in self._tables.items():
            table.parts = [*parts[name]]


def event_row(noted: Noted) -> Row:
    """The row of an event; columns that it does not have are null."""
    event = noted.event
    head = {"id": noted.number, "cause": noted.cause, "time_ns": noted.time_ns, "kind": event.kind, "actor": "server"}
    return head | _columns(event)


def _columns(event: events.TraceEvent) -> Row:
    """The columns of an event besides those that all have."""
    match event:
        case events.CoverageEntered() | events.CoverageLeft():
            return {"actor": "streets", "cv": event.cv, "distance_m": event.distance_m}
        case events.KeysChanged():
            keys = ", ".join(f"{key} = {shown(value)}" for key, value in event.keys.items())
            return {"actor": "experiment", "reason": keys}
        case events.RoundStarted():
            row: Row = {"round": event.round, "count": event.in_coverage, "version": event.version}
            if event.decision:
                plan = event.decision.plan
                status = f"{plan.status}, dropped to a selection" if plan.dropped else plan.status
                row |= {"reason": status, "cost": plan.cost}
            return row
        case events.CvPassedOver() | events.CvIneligible():
            row = _of_decision(event.decision, event.row)
            return row | {"reason": event.decision.plan.ineligible.get(row["cv"])}
        case events.TrainingOrdered():
            order, start_ns = event.order, event.decision.observation.constants.grid.start_ns
            row = _of_decision(event.decision, event.row) | attributes(order, "iterations cpu_hz train_ns version")
            return row | {"earliest_ns": start_ns(order.earliest_slot), "deadline_ns": start_ns(order.deadline_slot)}
        case events.ModelReceived():
            return _of_order(event.order, distance_m=event.distance_m)
        case events.TrainingFinished():
            return _of_order(event.order, distance_m=event.distance_m, energy_j=event.order.compute_j)
        case events.UploadOffered():
            times = {"earliest_ns": event.earliest_ns, "deadline_ns": event.deadline_ns}
            return _of_order(event.order, bits=event.order.payload_bits, **times)
        case events.UploadStarted():
            return _of_order(event.order, actor="gnb")
        case events.UploadReceived() | events.UpdateLost():
            return _of_outcome(event)
        case events.RoundEnded():
            return {"round": event.round, "count": event.delivered, "version": event.version}
        case events.UpdateAggregated():
            order, applied = event.outcome.order, event.applied
            staleness = None if order.version is None else applied.staleness
            row = {"round": order.round, "cv": order.cv, "weight": applied.weight}
            return row | {"version": order.version, "staleness": staleness}
        case events.ModelAggregated():
            weight = sum(applied.weight for applied in event.applied)
            return {"round": event.round, "count": len(event.applied), "weight": weight, "version": event.version}
        case events.ModelEvaluated():
            return {"round": event.round, "accuracy": event.evaluation.accuracy, "loss": event.evaluation.loss}
    raise TypeError(f"{type(event).__name__} has no columns")


def _of_decision(decision: Decision, row: int) -> Row:
    """What the server knew of the CV in a row of its observation."""
    observation = decision.observation
    observed = observed_columns(observation, row)
    return observed | {
        "round": observation.snapshot.round,
        "mean_snr_db": observation.mean_snr_db(row),
        "train_limit_ns": int(observation.train_limit_ns[row]),
        "max_iterations": decision.plan.max_iterations.get(observed["cv"]),
    }


def _of_order(order: TrainOrder, **columns: Any) -> Row:
    return {"actor": f"cv {order.cv}", "cv": order.cv, "round": order.round, **columns}


def _of_outcome(event: events.UploadReceived | events.UpdateLost) -> Row:
    outcome, account = event.outcome, event.outcome.account
    return _of_order(
        outcome.order,
        distance_m=event.distance_m,
        reason=outcome.lost,
        slots=outcome.tx_slots,
        count=outcome.lost_slots or None,
        mean_snr_db=event.upload.mean_snr_db if event.upload else None,
        bits=account.bits_drained,
        bits_left=account.bits_left if account.bits_offered else float(outcome.order.payload_bits),
        energy_j=account.energy_j,
        cost=account.paid,
    )


def round_row(report: RoundReport) -> Row:
    """The `rounds` row of a round."""
    outcomes, plan, ineligible = report.outcomes, report.plan, len(report.ineligible)
    accounts, fractions = [outcome.account for outcome in outcomes], [o.delivered_fraction for o in outcomes]
    transmit_j = sum(account.transmit_j for account in accounts)
    return attributes(report, "round start_ns end_ns in_coverage steps theorem2_sum") | {
        "eligible": report.in_coverage - ineligible,
        "ordered": len(outcomes),
        "delivered": sum(outcome.lost is None for outcome in outcomes),
        "p_suc": float(np.mean(fractions)) if fractions else None,
        "p_suc_with_ineligible": sum(fractions) / count if (count := len(fractions) + ineligible) else None,
        "staleness": float(np.mean([update.staleness for update in report.applied])) if report.applied else None,
        "weight_sum": sum(update.weight for update in report.applied),
        "planned_cost": sum(outcome.worst_cost for outcome in outcomes),
        "cost": sum(account.paid for account in accounts),
        "energy_j": sum(account.energy_j for account in accounts),
        "bits_per_joule": sum(account.bits_drained for account in accounts) / transmit_j if transmit_j > 0 else None,
        "accuracy": report.evaluation.accuracy if report.evaluation else None,
        "loss": report.evaluation.loss if report.evaluation else None,
        "plan_status": report.status,
        **{f"plan_{name}": getattr(plan, name) for name in ("dropped", "objective", "bound", "gap")},
        "overruns": sum(1 for _ in report.overruns()),
    }


def vehicle_rows(report: RoundReport) -> Iterator[Row]:
    """The `vehicles` rows of a round: one per order, and one per CV in coverage at its start that got no order."""
    ineligible, ordered = report.ineligible, {outcome.order.cv for outcome in report.outcomes}
    for decision in report.decisions:
        observation, outcomes = decision.observation, {outcome.order.cv: outcome for outcome in decision.outcomes}
        for index, cv in enumerate(observation.cv.tolist()):
            limit_ns = int(observation.window_slots[index]) * observation.constants.grid.slot_ns
            row = {"round": report.round, "samples": int(observation.snapshot.samples[index]), "limit_ns": limit_ns}
            row |= observed_columns(observation, index)
            if cv in outcomes:
                yield row | _outcome_columns(outcomes[cv])
            elif cv not in ordered and decision is report.decisions[0]:
                state = "ineligible" if cv in ineligible else "passed_over"
                yield row | {"state": state, "reason": ineligible.get(cv)}


def _outcome_columns(outcome: OrderOutcome) -> Row:
    return (
        attributes(outcome.order, "ordered_ns version iterations cpu_hz train_ns worst_j")
        | attributes(outcome.account, "compute_j transmit_j paid")
        | attributes(outcome, "tx_slots worst_cost delivered_fraction")
        | {"state": "lost" if outcome.lost else "delivered", "reason": outcome.lost}
        | {"delay_ns": outcome.end_ns - outcome.order.ordered_ns}
    )


def _outage_row(outcome: OrderOutcome) -> Row:
    account = outcome.account
    bits = {"granted_bits": account.bits_drained + account.bits_lost, "lost_bits": account.bits_lost}
    return attributes(outcome.order, "round cv ordered_ns") | attributes(outcome, "tx_slots lost_slots lost_j") | bits


def observed_columns(observation: Observation, row: int) -> Row:
    """What was observed of a CV, in columns that the tables `events` and `vehicles` share."""
    return {
        "cv": int(observation.cv[row]),
        "distance_m": float(observation.snapshot.distance_m[row]),
        "sojourn_ns": sojourn_ns(float(observation.snapshot.sojourn_s[row])),
        "worst_slots": int(observation.worst_slots[row]),
    }


def attributes(source: object, names: str) -> Row:
    """The columns that have the names of attributes."""
    return {name: getattr(source, name) for name in names.split()}


@dataclass
class UploadBin:
    """The slots of one CV within one bin so far."""

    cv: int
    first_left: float  # bits left at the start of the bin, or at the start of an upload that began in it
    left: float  # bits left now
    bits: float = 0.0  # sent in the bin by an earlier upload of the CV
    slots: int = 0  # in which the CV had a pRB
    prbs: int = 0  # summed over these slots
    power_w: float = 0.0  # summed over these slots


class UploadBins:
    """The rows of `uploads`: sums of the slots of bursts by CV and bin, which do not depend on where bursts are cut."""

    def __init__(self, grid: SlotGrid, append: Callable[[dict[str, Any]], None]) -> None:
        self._slots_per_bin, self._append = BIN_NS // grid.slot_ns, append
        self._number, self._open = 0, dict[int, UploadBin]()  # the current bin, and its CVs

    def add(self, burst: Burst) -> None:
        """Add the slots of a burst, except for the bits of its last slot, which may still be lost."""
        first = 0
        while first < burst.slots:
            number = (burst.first_slot + first) // self._slots_per_bin
            end = min(burst.slots, (number + 1) * self._slots_per_bin - burst.first_slot)
            if number != self._number:
                self.close()
                self._number = number
            self._add(burst, first, end)
            first = end

    def _add(self, burst: Burst, first: int, end: int) -> None:
        """Add the slots from `first` up to `end`, which are in the same bin; most bursts are short, so not by numpy."""
        left = burst.log.bits_left[[first, min(end, burst.slots - 1)]].T.tolist()
        prbs, power_w = (column[first:end].T.tolist() for column in (burst.log.prbs, burst.log.power_w))
        for row, upload in enumerate(burst.uploads):
            before, after = left[row]
            sums = self._open.get(upload.cv)
            if sums is None:
                sums = self._open[upload.cv] = UploadBin(upload.cv, before, before)
            elif sums.left != before:  # another upload of the CV ended in this bin
                sums.bits, sums.first_left = sums.bits + (sums.first_left - sums.left), before
            sums.left = after
            sums.slots += end - first - prbs[row].count(0)
            sums.prbs += sum(prbs[row])
            sums.power_w = reduce(add, power_w[row], sums.power_w)  # one by one; `sum` may add in another order

    def receive(self, cv: int, bits: float) -> None:
        """Add bits of the last slot of a burst, which the gNB has received."""
        sums = self._open[cv]
        sums.left = max(0.0, sums.left - bits)

    def close(self) -> None:
        """Append the rows of the current bin, in the order of the CVs; pRBs and power are means over their slots."""
        for cv, sums in sorted(self._open.items()):
            row = {"time_ns": self._number * BIN_NS, "cv": cv, "slots": sums.slots}
            means = {"prbs": sums.prbs / max(sums.slots, 1), "power_w": sums.power_w / max(sums.slots, 1)}
            self._append(row | means | {"bits": sums.bits + (sums.first_left - sums.left), "bits_left": sums.left})
        self._open.clear()

    def state(self) -> State:
        """The current bin, whose rows are not in the table yet, for a checkpoint."""
        return {"number": self._number, "open": cast(State, state_of([*self._open.values()]))}

    def restore(self, state: State) -> None:
        """Restore the current bin from a checkpoint."""
        self._number = state["number"]
        self._open = {sums.cv: sums for sums in from_state(list[UploadBin], state["open"])}
