"""The timeline of a run for Perfetto, the trace viewer at ui.perfetto.dev: tracks for the server, the gNB and every CV.

    server   rounds; orders, aggregations and evaluations as instants; CVs in coverage
    gNB      counters of the uplink: power and pRBs
    CV n     times in coverage; in them training, waiting and upload of each order; losses and refusals as instants

Arrows lead from an order to its training, its upload, and its aggregation or loss. The counters of the uplink are as
exact as what the run recorded: slots, bins of 50 ms, or only events. The integral of the power is the energy in each
case.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackDescriptor, TrackEvent

from vefl_sim.analysis.events import Event, Order, orders_in, outcome_of, rows_of
from vefl_sim.analysis.files import require_ending, write_file
from vefl_sim.core.clock import to_s
from vefl_sim.core.errors import printable
from vefl_sim.protocol.trace import DEPARTURES
from vefl_sim.records.recorder import BIN_NS
from vefl_sim.records.run_directory import Run

_ENDINGS = (".perfetto-trace", ".pftrace")
_REFUSALS = {"cv_passed_over": "passed over", "cv_ineligible": "ineligible"}
_DECISIONS = {
    "training_ordered": "orders",
    "update_aggregated": "aggregation",
    "model_aggregated": "aggregation",
    "model_evaluated": "evaluation",
}
_NOT_NOTES = {"id", "cause", "time_ns", "kind", "actor", "cv"}
_LAST_ID = 1 << 63  # after every event of its instant
_MAX_TEXT = 200  # characters of a name or a value; a run may come from anywhere
_Place = tuple[int, int]  # a time in ns and the id of an event, which orders what happens at the same time


def write_timeline(run: Run, file: Path | None = None, rounds: range | None = None) -> Path:
    """Write the timeline of a run, or of some of its rounds, to a file; the default is one in the run directory.

    Returns the path. Its ending must be one of Perfetto's.
    """
    name = f"timeline_{rounds.start}-{rounds.stop - 1}" if rounds else "timeline"
    path = file or run.path / (name + _ENDINGS[0])
    require_ending(path, "timeline", _ENDINGS)
    return write_file(path, _Timeline(run, rounds).drawn(), example=name + _ENDINGS[0])


class _Timeline:
    """The events of a run, or of some of its rounds, and the tracks on which they are drawn."""

    def __init__(self, run: Run, rounds: range | None) -> None:
        self.run, self.trace, self.marks = run, Trace(), list[tuple[int, int, Any]]()
        self.all_events = sorted(rows_of(run.events), key=_place)
        self.all_orders = orders_in(self.all_events)
        flows = enumerate(self.all_orders, 1)
        self.orders = {n: order for n, order in flows if _is_in(rounds, order["training_ordered"])}
        self.events = [event for event in self.all_events if _is_in(rounds, event)]
        self.first_ns = self.events[0]["time_ns"] if rounds else 0
        self.last_ns = self.events[-1]["time_ns"] if self.events else 0

    def drawn(self) -> bytes:
        """The trace in Perfetto's format: all tracks, then their marks in the order of time."""
        top = self._track(self.run.path.resolve().name)
        server, gnb, cvs = (self._track(name, top) for name in ("server", "gNB", "CVs"))
        visits = [*self._visits()]
        numbers = {event["cv"] for event in (*self.events, *(entered for entered, *_ in visits))} - {None}
        tracks = {cv: self._track(f"CV {cv}", cvs) for cv in sorted(numbers)}
        self._counter(server, "CVs in coverage", "CVs", coverage_changes(self.all_events))
        for name, unit, changes in _uplink_changes(self.run, self.all_orders):
            self._counter(gnb, name, unit, changes)
        self._rounds(server)
        self._decisions(server)
        for entered, begin, end in visits:
            self._slice(tracks[entered["cv"]], "in coverage", begin, end, _notes(entered))
        for event in self.events:
            if event["kind"] in _REFUSALS:
                self._instant(tracks[event["cv"]], _REFUSALS[event["kind"]], event, _notes(event))
        for flow, order in self.orders.items():
            self._order(tracks[order["training_ordered"]["cv"]], flow, order)
        for time_ns, _, event in sorted(self.marks, key=itemgetter(0, 1)):
            self.trace.packet.add(timestamp=time_ns, trusted_packet_sequence_id=1, track_event=event)
        return bytes(self.trace.SerializeToString())

    def _track(self, name: str, parent: int = 0, *, unit: str = "") -> int:
        """Add a track below its earlier siblings; one with a unit is a counter. Returns its number."""
        number = len(self.trace.packet) + 1
        track = self.trace.packet.add().track_descriptor
        track.uuid, track.name, track.sibling_order_rank = number, _text(name), number
        track.child_ordering = TrackDescriptor.EXPLICIT
        if parent:
            track.parent_uuid = parent
        if unit:
            track.counter.unit_name = unit
        return number

    def _mark(
        self, at: _Place, kind: int, track: int, name: str = "", notes: Mapping[str, Any] | None = None, **more: Any
    ) -> None:
        """Add an event; `flow_ids` lead on from it, `terminating_flow_ids` end at it."""
        if name:
            more |= {"name": _text(name), "debug_annotations": _annotations(notes or {})}
        self.marks.append((*at, TrackEvent(type=kind, track_uuid=track, **more)))

    def _slice(self, track: int, name: str, begin: _Place, end: _Place | None, notes: Event, flow: int = 0) -> None:
        """Add a slice within those around it; without an end it is drawn to the end of the trace."""
        self._mark(begin, TrackEvent.TYPE_SLICE_BEGIN, track, name, notes, flow_ids=[flow] if flow else [])
        if end is not None:
            self._mark(end, TrackEvent.TYPE_SLICE_END, track)

    def _instant(self, track: int, name: str, at: Event, notes: Event, **flows: Sequence[int]) -> None:
        """Add an instant."""
        self._mark(_place(at), TrackEvent.TYPE_INSTANT, track, name, notes, **flows)

    def _counter(self, parent: int, name: str, unit: str, changes: pd.Series) -> None:
        """A counter that sums up changes, within the time that is drawn; what rounding leaves of a sum counts as 0."""
        total = changes.set_axis(changes.index.astype("int64")).groupby(level=0).sum().cumsum()
        total[total.abs() < 1e-9 * changes.abs().max()] = 0.0
        before = total.loc[: self.first_ns]
        start = pd.Series({self.first_ns: before.iloc[-1] if len(before) else 0.0})
        shown = pd.concat([start, total.loc[self.first_ns + 1 : self.last_ns]])
        track = self._track(name, parent, unit=unit)
        shown = shown[shown != shown.shift()]
        for time_ns, value in zip(shown.index.tolist(), shown.tolist(), strict=True):
            self._mark((time_ns, 0), TrackEvent.TYPE_COUNTER, track, double_counter_value=value)

    def _rounds(self, server: int) -> None:
        """Rounds, or windows where there are none, with their rows in the rounds table if they have ended."""
        rows = {row["round"]: row for row in rows_of(self.run.rounds)}
        ended = {event["round"]: _place(event) for event in self.events if event["kind"] == "round_ended"}
        for event in self.events:
            if event["kind"] == "round_started":
                k = event["round"]
                name = f"{'round' if event['version'] is None else 'window'} {k}"
                self._slice(server, name, _place(event), ended.get(k), _notes(rows.get(k, event)))

    def _decisions(self, server: int) -> None:
        """Orders and aggregations, those of one instant together, and evaluations."""
        kinds = ("training_ordered", "update_aggregated")
        numbers = {order[kind]["id"]: flow for flow, order in self.orders.items() for kind in kinds if kind in order}
        decisions = [event for event in self.events if event["kind"] in _DECISIONS]
        for (_, name), group in groupby(decisions, lambda event: (event["time_ns"], _DECISIONS[event["kind"]])):
            together = [*group]
            flows = [numbers[event["id"]] for event in together if event["id"] in numbers]
            if name == "orders":
                self._instant(server, name, together[0], {"count": len(together)}, flow_ids=flows)
            else:
                self._instant(server, name, together[-1], _notes(together[-1]), terminating_flow_ids=flows)

    def _visits(self) -> Iterator[tuple[Event, _Place, _Place]]:
        """The event with which each visit of a CV to coverage begins; its begin and end, cut to the time drawn."""
        first, last = (self.first_ns, 0), (self.last_ns, _LAST_ID)
        inside, visits = dict[int, Event](), list[tuple[Event, _Place]]()
        for event in self.all_events:
            if event["kind"] == "coverage_entered":
                inside[event["cv"]] = event
            elif event["kind"] in DEPARTURES:
                visits.append((inside.pop(event["cv"]), (event["time_ns"], _LAST_ID)))
        for entered, left in (*visits, *((entered, last) for entered in inside.values())):
            if _place(entered) <= last and left >= first:
                yield entered, max(_place(entered), first), min(left, last)

    def _order(self, track: int, flow: int, order: Order) -> None:
        """Training, waiting for pRBs if that took time, and the upload of an order, as far as it got; and its loss."""
        ordered, outcome, lost = order["training_ordered"], outcome_of(order), order.get("update_lost")
        finished, offered, started = map(order.get, ("training_finished", "upload_offered", "upload_started"))
        used = order.get("update_aggregated", {})
        applied = {name: used[name] for name in ("weight", "version", "staleness") if used.get(name) is not None}
        energy = {"energy_j": _compute_j(order)} if finished or outcome else {}
        direct = {} if started else applied  # without constraints there is no upload
        phases = [("training", ordered, finished or outcome, _notes(ordered) | energy | direct)]
        if offered and (not started or started["time_ns"] > offered["time_ns"]):
            phases.append(("waiting", offered, started or outcome, _notes(offered)))
        if started:
            result = _notes(outcome) | {"energy_j": _transmit_j(order)} if outcome else {}
            phases.append(("upload", started, outcome, _notes(offered or started) | result | applied))
        for name, begin, end, notes in phases:
            shown = f"{name}, lost" if lost and end is lost else name
            self._slice(track, shown, _place(begin), _place(end) if end else None, notes, flow)
        if lost:
            self._instant(track, f"lost: {lost['reason']}", lost, _notes(lost), terminating_flow_ids=[flow])


def coverage_changes(events: Iterable[Event]) -> pd.Series:
    """Changes of the number of CVs in coverage, by their times."""
    signs = {"coverage_entered": 1.0} | dict.fromkeys(DEPARTURES, -1.0)
    shown = [event for event in events if event["kind"] in signs]
    return pd.Series([signs[event["kind"]] for event in shown], [event["time_ns"] for event in shown], float)


def _uplink_changes(run: Run, orders: Sequence[Order]) -> Iterator[tuple[str, str, pd.Series]]:
    """Name, unit and changes of what the uplink does: its power, and pRBs where they are recorded."""
    recorded, slot_ns, mean = run.experiment.trace.slots, run.experiment.slots.slot_ns, ""
    if recorded == "full":
        rows = run.table("slots")
        rows = rows.assign(start=rows["slot"] * slot_ns, end=(rows["slot"] + 1) * slot_ns)
    elif recorded == "uploads":
        rows, mean = run.table("uploads"), ", mean over 50 ms"
        share = rows["slots"] * slot_ns / BIN_NS
        rows = rows.assign(start=rows["time_ns"], end=rows["time_ns"] + BIN_NS)
        rows = rows.assign(power_w=share * rows["power_w"], prbs=share * rows["prbs"])
    else:
        rows, mean = pd.DataFrame(_mean_power(orders), columns=["start", "end", "power_w"]), ", mean over each upload"
    for column, name, unit in (("power_w", "transmit power", "W"), ("prbs", "pRBs used", "pRBs")):
        if column in rows:
            value = rows[column].astype(float)
            yield name + mean, unit, pd.concat([value.set_axis(rows["start"]), -value.set_axis(rows["end"])])


def _mean_power(orders: Iterable[Order]) -> Iterator[tuple[int, int, float]]:
    """First slot, outcome and mean transmit power of each upload that has ended."""
    for order in orders:
        started, outcome = order.get("upload_started"), outcome_of(order)
        if started and outcome and outcome["time_ns"] > started["time_ns"]:
            power_w = _transmit_j(order) / to_s(outcome["time_ns"] - started["time_ns"])
            yield started["time_ns"], outcome["time_ns"], power_w


def _compute_j(order: Order) -> float:
    """Energy of the training: all that the order used if the CV never offered its update."""
    finished = order.get("training_finished") or outcome_of(order)
    return float(finished["energy_j"]) if finished else 0.0


def _transmit_j(order: Order) -> float:
    """Energy of the upload."""
    outcome = outcome_of(order)
    return float(outcome["energy_j"]) - _compute_j(order) if outcome else 0.0


def _notes(row: Event) -> dict[str, Any]:
    """The columns of a row that say more than what it is, when and whose; times are in seconds."""
    columns = {name: value for name, value in row.items() if name not in _NOT_NOTES and value is not None}
    return {
        f"{name[:-3]}_s" if name.endswith("_ns") else name: to_s(value) if name.endswith("_ns") else value
        for name, value in columns.items()
    }


def _annotations(notes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Values that Perfetto shows, by their names, as its messages."""
    kinds = {str: "string_value", bool: "bool_value", int: "int_value"}
    return [
        {"name": name, kinds.get(type(value), "double_value"): _text(value) if isinstance(value, str) else value}
        for name, value in notes.items()
    ]


def _is_in(rounds: range | None, event: Event) -> bool:
    return rounds is None or event["round"] in rounds


def _place(event: Event) -> _Place:
    return event["time_ns"], event["id"]


def _text(text: str) -> str:
    """A text that came with a run: in one line, and short."""
    return printable(text[:_MAX_TEXT])[:_MAX_TEXT]
