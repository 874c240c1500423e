"""Records the events, rounds, positions and slots of a simulation as rows of tables."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from vefl_sim.core.clock import SlotGrid, to_ns
from vefl_sim.core.state import State
from vefl_sim.experiment.experiment import Experiment, TraceTable
from vefl_sim.mobility.scene import Scene
from vefl_sim.optimize.rat.allocate import AllocationStatus
from vefl_sim.protocol.mac import Burst
from vefl_sim.protocol.messages import OrderOutcome, RoundReport
from vefl_sim.protocol.server.overruns import overruns
from vefl_sim.records.schemas import SCHEMAS
from vefl_sim.records.table_parts import PartWriter
from vefl_sim.records.upload_bins import UploadBins
from vefl_sim.schemes.observation import Observation, sojourn_ns

OPTIONAL = ("outages", "broadcasts")
_SAMPLED_SLOTS = 100  # `trace.slots = "sampled"`: every 100th slot


class Recorder:
    """Writes the tables of one run, each as a series of part files."""

    def __init__(self, directory: Path, trace: TraceTable, grid: SlotGrid, optional: Collection[str] = ()) -> None:
        """`directory` is the folder of the part files, `optional` names further tables to record."""
        self._slot_every = {"sampled": _SAMPLED_SLOTS, "full": 1}.get(trace.slots, 0)
        recorded = {"slots": self._slot_every > 0, "uploads": trace.slots == "uploads"}
        recorded |= {name: name in optional for name in OPTIONAL}
        self._tables = {name: PartWriter(directory, name) for name in SCHEMAS if recorded.get(name, True)}
        self._mobility_every_ns = to_ns(trace.mobility_every_s)
        self._mobility_due_ns = 0
        uploads = self._tables.get("uploads")
        self._bins = UploadBins(grid, uploads.append) if uploads else None

    def append(self, table: str, row: dict[str, Any]) -> None:
        """Add a row to a table."""
        self._tables[table].append(row)

    def record_scene(self, scene: Scene) -> None:
        """Record the positions of all vehicles, once per `trace.mobility_every_s`."""
        if scene.time_ns < self._mobility_due_ns:
            return
        self._mobility_due_ns += self._mobility_every_ns
        times = {"time_ns": np.full(len(scene.vehicle), scene.time_ns)}
        self._tables["mobility"].extend(vars(scene) | times)

    def record_burst(self, burst: Burst) -> None:
        """Record what each CV was allocated in the slots of a burst, as far as `trace.slots` asks for it."""
        if self._bins:
            self._bins.add(burst)
        if not self._slot_every:
            return
        log = burst.log
        for index in range(burst.slots):
            slot = burst.first_slot + index
            if slot % self._slot_every:
                continue
            for row in np.flatnonzero(log.prbs[index]).tolist():
                self.append(
                    "slots",
                    {
                        "slot": slot,
                        "cv": burst.uploads[row].cv,
                        "prbs": int(log.prbs[index, row]),
                        "power_w": float(log.power_w[index, row]),
                        "rate_bps": float(log.rate_bps[index, row]),
                        "bits_left": float(log.bits_left[index, row]),
                        "gap": None if np.isnan(log.gap[index]) else float(log.gap[index]),
                        "status": AllocationStatus(log.outcome[index]).name.lower(),
                    },
                )

    def record_arrival(self, cv: int, bits: float) -> None:
        """Record that the gNB has received what a CV sent in the last slot of a burst."""
        if self._bins:
            self._bins.receive(cv, bits)

    def record_round(self, report: RoundReport) -> None:
        """Record a finished round and the CVs that were in coverage at its start."""
        self.append("rounds", round_row(report))
        for row in vehicle_rows(report):
            self.append("vehicles", row)
        if "outages" in self._tables:
            for outcome in report.outcomes:
                self.append("outages", _outage_row(outcome))
        if "broadcasts" in self._tables:
            for broadcast in filter(None, (decision.broadcast for decision in report.decisions)):
                self.append("broadcasts", {"round": report.round} | vars(broadcast))

    def commit(self) -> dict[str, list[dict[str, Any]]]:
        """Write all rows so far to disk; return the part files that hold them, by table."""
        return {name: table.commit() for name, table in self._tables.items()}

    def compact(self, directory: Path) -> None:
        """Write one file per table with all rows so far."""
        self._close_bins()
        for table in self._tables.values():
            table.compact(directory)

    def discard(self) -> None:
        """Delete part files that are not complete; committed rows are kept."""
        for table in self._tables.values():
            table.discard()

    def salvage(self, directory: Path) -> None:
        """Like `compact`, after an error: tables that cannot be completed are skipped."""
        self._close_bins()
        for table in self._tables.values():
            with suppress(Exception):  # the error that stopped the run is the one to report
                table.compact(directory)

    def state(self) -> State:
        """What is in no part file: the time of the next record of positions, and the current upload bin."""
        due: State = {"mobility_due_ns": self._mobility_due_ns}
        return due | {"uploads": self._bins.state()} if self._bins else due

    def restore(self, state: State) -> None:
        """Restore the time of the next record of positions, and the current upload bin, from a checkpoint."""
        self._mobility_due_ns = state["mobility_due_ns"]
        if self._bins:
            self._bins.restore(state["uploads"])

    def _close_bins(self) -> None:
        if self._bins:
            self._bins.close()

    def continue_after(self, parts: dict[str, list[dict[str, Any]]]) -> None:
        """Append new rows after those in these part files, given by table."""
        for name, table in self._tables.items():
            table.continue_after(parts[name])


def round_row(report: RoundReport) -> dict[str, Any]:
    """The `rounds` row of a round."""
    outcomes, plan, ineligible = report.outcomes, report.plan, len(report.ineligible)
    fractions = [outcome.delivered_fraction for outcome in outcomes]
    transmit_j = sum(outcome.account.transmit_j for outcome in outcomes)
    drained = sum(outcome.account.bits_drained for outcome in outcomes)
    return {
        "round": report.round,
        "start_ns": report.start_ns,
        "end_ns": report.end_ns,
        "in_coverage": report.in_coverage,
        "eligible": report.in_coverage - ineligible,
        "ordered": len(outcomes),
        "delivered": sum(outcome.lost is None for outcome in outcomes),
        "p_suc": float(np.mean(fractions)) if fractions else None,
        "p_suc_with_ineligible": _mean_with_zeros(fractions, ineligible),
        "steps": report.steps,
        "staleness": float(np.mean([update.staleness for update in report.applied])) if report.applied else None,
        "weight_sum": sum(update.weight for update in report.applied),
        "theorem2_sum": report.theorem2_sum,
        "planned_cost": sum(outcome.worst_cost for outcome in outcomes),
        "cost": sum(outcome.account.paid for outcome in outcomes),
        "energy_j": sum(outcome.account.energy_j for outcome in outcomes),
        "bits_per_joule": drained / transmit_j if transmit_j > 0 else None,
        "accuracy": report.evaluation.accuracy if report.evaluation else None,
        "loss": report.evaluation.loss if report.evaluation else None,
        "plan_status": report.status,
        "plan_dropped": plan.dropped,
        "plan_objective": plan.objective,
        "plan_bound": plan.bound,
        "plan_gap": plan.gap,
        "overruns": sum(1 for _ in overruns(report)),
    }


def vehicle_rows(report: RoundReport) -> list[dict[str, Any]]:
    """The `vehicles` rows of a round: one per order, and one per CV in coverage at its start that got no order."""
    ineligible, ordered = report.ineligible, {outcome.order.cv for outcome in report.outcomes}
    rows = []
    for decision in report.decisions:
        outcomes = {outcome.order.cv: outcome for outcome in decision.outcomes}
        for index, cv in enumerate(decision.observation.cv.tolist()):
            row = {"round": report.round, "cv": cv} | _observed_columns(decision.observation, index)
            if cv in outcomes:
                rows.append(row | _outcome_columns(outcomes[cv]))
            elif cv in ineligible and decision is report.decisions[0]:
                rows.append(row | {"state": "ineligible", "reason": ineligible[cv]})
            elif cv not in ordered and decision is report.decisions[0]:
                rows.append(row | {"state": "passed_over"})
    return rows


def _observed_columns(observation: Observation, index: int) -> dict[str, Any]:
    snapshot = observation.snapshot
    return {
        "distance_m": float(snapshot.distance_m[index]),
        "sojourn_ns": sojourn_ns(float(snapshot.sojourn_s[index])),
        "samples": int(snapshot.samples[index]),
        "limit_ns": int(observation.window_slots[index]) * observation.constants.grid.slot_ns,
        "worst_slots": int(observation.worst_slots[index]),
    }


def _outcome_columns(outcome: OrderOutcome) -> dict[str, Any]:
    order, account = outcome.order, outcome.account
    return {
        "ordered_ns": order.ordered_ns,
        "version": order.version,
        "state": "delivered" if outcome.lost is None else "lost",
        "reason": outcome.lost,
        "iterations": order.iterations,
        "cpu_hz": order.cpu_hz,
        "train_ns": order.train_ns,
        "delay_ns": outcome.end_ns - order.ordered_ns,
        "tx_slots": outcome.tx_slots,
        "compute_j": account.compute_j,
        "transmit_j": account.transmit_j,
        "worst_j": order.worst_j,
        "paid": account.paid,
        "worst_cost": outcome.worst_cost,
        "delivered_fraction": outcome.delivered_fraction,
    }


def _outage_row(outcome: OrderOutcome) -> dict[str, Any]:
    order, account = outcome.order, outcome.account
    return {
        "round": order.round,
        "cv": order.cv,
        "ordered_ns": order.ordered_ns,
        "tx_slots": outcome.tx_slots,
        "lost_slots": outcome.lost_slots,
        "granted_bits": account.bits_drained + account.bits_lost,
        "lost_bits": account.bits_lost,
        "lost_j": outcome.lost_j,
    }


def optional_tables(experiment: Experiment) -> list[str]:
    """The tables that a run of the experiment records because a key of the radio asks for what they show."""
    wanted = experiment.radio.csi_delay_slots > 0, experiment.downlink.kind == "broadcast"
    return [name for name, recorded in zip(OPTIONAL, wanted, strict=True) if recorded]


def _mean_with_zeros(fractions: list[float], zeros: int) -> float | None:
    count = len(fractions) + zeros
    return sum(fractions) / count if count else None
