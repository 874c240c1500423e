"""The timeline of a run for Perfetto, the trace viewer at ui.perfetto.dev: tracks for the server, the gNB and every CV.

    server   rounds; orders, aggregations and evaluations as instants; CVs in coverage
    gNB      times in which it has updates to receive; queue, power and pRBs
    CV n     times in coverage; in them training, waiting and upload of each order; losses and refusals as instants

Arrows lead from an order to its training, its upload, and its aggregation or loss. The counters of the uplink are as
exact as what the run recorded: slots, bins of 50 ms, or only events. The integral of the power is the energy in each
case.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from vefl_sim.analysis.events import Event, Order, orders_in, outcome_of, rows_of
from vefl_sim.core.clock import to_s
from vefl_sim.core.errors import BadInput, CannotWrite, first_line, printable
from vefl_sim.core.files import atomic_file
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


def write_timeline(run: Run, file: Path | None = None, rounds: range | None = None) -> Path:
    """Write the timeline of a run, or of some of its rounds, to a file; the default is one in the run directory.

    Returns the path. Its ending must be one of Perfetto's, so that no table and no experiment is ever overwritten.
    """
    name = f"timeline_{rounds.start}-{rounds.stop - 1}" if rounds else "timeline"
    path = file or run.path / (name + _ENDINGS[0])
    if not path.name.endswith(_ENDINGS):
        raise BadInput(f"{path} cannot be written: the name of a timeline must end with {' or '.join(_ENDINGS)}.")
    content = _Timeline(run, rounds).drawn().serialized()
    try:
        with atomic_file(path) as partial:
            partial.write_bytes(content)
    except CannotWrite as error:
        reason = first_line(error.__cause__ or error)
        raise BadInput(f"{path} cannot be written ({reason}): choose another file.") from None
    return path


class _Mark(NamedTuple):
    """Something on a track: the begin or end of a slice, an instant, or a value of a counter."""

    time_ns: int
    id: int  # of the event, which orders what happens at the same time
    type: str
    track: int
    name: str = ""
    notes: Mapping[str, Any] = MappingProxyType({})  # values that Perfetto shows, by their names
    flows: Sequence[int] = ()  # arrows lead from one slice or instant of a flow to the next
    ended: Sequence[int] = ()
    value: float = 0.0


class _Trace:
    """Tracks, and the marks on them."""

    def __init__(self) -> None:
        self._tracks = list[tuple[str, int, str]]()
        self._marks = list[_Mark]()

    def track(self, name: str, parent: int = 0, *, unit: str = "") -> int:
        """Add a track below its earlier siblings; one with a unit is a counter. Returns its number."""
        self._tracks.append((name, parent, unit))
        return len(self._tracks)

    def slice(
        self, track: int, name: str, begin: Event, end: Event | None, notes: dict[str, Any], flows: Sequence[int] = ()
    ) -> None:
        """Add a slice within those around it; without an end it is drawn to the end of the trace."""
        self._marks.append(_Mark(begin["time_ns"], begin["id"], "SLICE_BEGIN", track, name, notes, flows))
        if end is not None:
            self._marks.append(_Mark(end["time_ns"], end["id"], "SLICE_END", track))

    def instant(
        self,
        track: int,
        name: str,
        at: Event,
        notes: dict[str, Any],
        flows: Sequence[int] = (),
        ended: Sequence[int] = (),
    ) -> None:
        """Add an instant, at which the flows `ended` end."""
        self._marks.append(_Mark(at["time_ns"], at["id"], "INSTANT", track, name, notes, flows, ended))

    def count(self, track: int, values: pd.Series) -> None:
        """Set a counter to these values, at the times that are their index."""
        self._marks += [
            _Mark(time_ns, 0, "COUNTER", track, value=value)
            for time_ns, value in zip(values.index.tolist(), values.tolist(), strict=True)
        ]

    def serialized(self) -> bytes:
        """The trace in Perfetto's format, with marks in the order of time."""
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackDescriptor, TrackEvent

        trace = Trace()
        for number, (name, parent, unit) in enumerate(self._tracks, 1):
            track = trace.packet.add().track_descriptor
            track.uuid, track.name, track.sibling_order_rank = number, _text(name), number
            track.child_ordering = TrackDescriptor.EXPLICIT
            if parent:
                track.parent_uuid = parent
            if unit:
                track.counter.unit_name = unit
        for mark in sorted(self._marks, key=itemgetter(0, 1)):
            packet = trace.packet.add(timestamp=mark.time_ns, trusted_packet_sequence_id=1)
            event = packet.track_event
            event.type, event.track_uuid = TrackEvent.Type.Value(f"TYPE_{mark.type}"), mark.track
            if mark.type == "COUNTER":
                event.double_counter_value = mark.value
            elif mark.type != "SLICE_END":
                event.name = _text(mark.name)
                event.flow_ids.extend(mark.flows)
                event.terminating_flow_ids.extend(mark.ended)
                for name, value in mark.notes.items():
                    kind = {str: "string", bool: "bool", int: "int"}.get(type(value), "double")
                    shown = _text(value) if kind == "string" else value
                    event.debug_annotations.add(name=name, **{f"{kind}_value": shown})
        content: bytes = trace.SerializeToString()
        return content


class _Timeline:
    """The events of a run, or of some of its rounds, and the tracks on which they are drawn."""

    def __init__(self, run: Run, rounds: range | None) -> None:
        self.run, self.trace = run, _Trace()
        self.all_events = sorted(rows_of(run.events), key=_place)
        self.all_orders = orders_in(self.all_events)
        flows = enumerate(self.all_orders, 1)
        self.orders = {n: order for n, order in flows if _is_in(rounds, order["training_ordered"])}
        self.events = [event for event in self.all_events if _is_in(rounds, event)]
        if rounds and not self.events:
            last = max((event["round"] or 0 for event in self.all_events), default=0)
            span = f"1 to {last}" if last else "none"
            raise BadInput(f"There is no such round in {run.path}: choose among the recorded rounds ({span}).")
        self.first_ns = self.events[0]["time_ns"] if rounds else 0
        self.last_ns = self.events[-1]["time_ns"] if self.events else 0

    def drawn(self) -> _Trace:
        """The trace with all tracks."""
        trace = self.trace
        top = trace.track(self.run.path.resolve().name)
        server, gnb, cvs = (trace.track(name, top) for name in ("server", "gNB", "CVs"))
        visits = [*self._visits()]
        numbers = {event["cv"] for event in (*self.events, *(entered for entered, _ in visits))} - {None}
        tracks = {cv: trace.track(f"CV {cv}", cvs) for cv in sorted(numbers)}
        self._counter(server, "CVs in coverage", "CVs", coverage_changes(self.all_events))
        for name, unit, changes in _uplink_changes(self.run, self.all_orders):
            self._counter(gnb, name, unit, changes)
        self._rounds(server)
        self._decisions(server)
        self._reception(gnb)
        for entered, left in visits:
            trace.slice(tracks[entered["cv"]], "in coverage", entered, left, _notes(entered))
        for event in self.events:
            if event["kind"] in _REFUSALS:
                trace.instant(tracks[event["cv"]], _REFUSALS[event["kind"]], event, _notes(event))
        for flow, order in self.orders.items():
            self._order(tracks[order["training_ordered"]["cv"]], flow, order)
        return trace

    def _counter(self, parent: int, name: str, unit: str, changes: pd.Series) -> None:
        """A counter that sums up changes, within the time that is drawn; what rounding leaves of a sum counts as 0."""
        total = changes.groupby(level=0).sum().cumsum()
        total[total.abs() < 1e-9 * changes.abs().max()] = 0.0
        before = total.loc[: self.first_ns]
        start = pd.Series({self.first_ns: before.iloc[-1] if len(before) else 0.0})
        shown = pd.concat([start, total.loc[self.first_ns + 1 : self.last_ns]])
        self.trace.count(self.trace.track(name, parent, unit=unit), shown[shown != shown.shift()])

    def _rounds(self, server: int) -> None:
        """Rounds, or windows where there are none, with their rows in the rounds table if they have ended."""
        rows = {row["round"]: row for row in rows_of(self.run.rounds)}
        ended = {event["round"]: event for event in self.events if event["kind"] == "round_ended"}
        for event in self.events:
            if event["kind"] == "round_started":
                k = event["round"]
                name = f"{'round' if event['version'] is None else 'window'} {k}"
                self.trace.slice(server, name, event, ended.get(k), _notes(rows.get(k, event)))

    def _decisions(self, server: int) -> None:
        """Orders and aggregations, those of one instant together, and evaluations."""
        kinds = ("training_ordered", "update_aggregated")
        numbers = {order[kind]["id"]: flow for flow, order in self.orders.items() for kind in kinds if kind in order}
        decisions = [event for event in self.events if event["kind"] in _DECISIONS]
        for (_, name), group in groupby(decisions, lambda event: (event["time_ns"], _DECISIONS[event["kind"]])):
            together = [*group]
            flows = [numbers[event["id"]] for event in together if event["id"] in numbers]
            if name == "orders":
                self.trace.instant(server, name, together[0], {"count": len(together)}, flows=flows)
            else:
                self.trace.instant(server, name, together[-1], _notes(together[-1]), ended=flows)

    def _reception(self, gnb: int) -> None:
        """Times in which at least one update is offered and neither received nor lost."""
        offered = [order for order in self.orders.values() if "upload_offered" in order]
        changes = [(order["upload_offered"], 1) for order in offered]
        changes += [(outcome, -1) for order in offered if (outcome := outcome_of(order))]
        queued, since, notes = 0, Event(), dict[str, float]()
        for event, change in sorted(changes, key=lambda pair: _place(pair[0])):
            if not queued:
                since, notes = event, {"updates": 0, "bits": 0.0}
            queued += change
            notes["updates"] += change > 0
            notes["bits"] += event["bits"] if change < 0 else 0.0
            if not queued:
                self.trace.slice(gnb, "receiving", since, event, notes)
        if queued:
            self.trace.slice(gnb, "receiving", since, None, notes)

    def _visits(self) -> Iterator[tuple[Event, Event]]:
        """The times of each CV in coverage, from an event to another, cut to the time that is drawn."""
        inside, visits = dict[int, Event](), list[tuple[Event, Event]]()
        for event in self.all_events:
            if event["kind"] == "coverage_entered":
                inside[event["cv"]] = event
            elif event["kind"] in DEPARTURES:
                visits.append((inside.pop(event["cv"]), event))
        first, last = {"time_ns": self.first_ns, "id": 0}, {"time_ns": self.last_ns, "id": _LAST_ID}
        for entered, left in (*visits, *((entered, last) for entered in inside.values())):
            if entered["time_ns"] <= self.last_ns and left["time_ns"] >= self.first_ns:
                yield max(entered, entered | first, key=_place), min(left | {"id": _LAST_ID}, last, key=_place)

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
            self.trace.slice(track, f"{name}, lost" if lost and end is lost else name, begin, end, notes, [flow])
        if lost:
            self.trace.instant(track, f"lost: {lost['reason']}", lost, _notes(lost), ended=[flow])


def coverage_changes(events: Iterable[Event]) -> pd.Series:
    """Changes of the number of CVs in coverage, by their times."""
    signs = {"coverage_entered": 1.0} | dict.fromkeys(DEPARTURES, -1.0)
    return _changes((event["time_ns"], signs[event["kind"]]) for event in events if event["kind"] in signs)


def _uplink_changes(run: Run, orders: Sequence[Order]) -> Iterator[tuple[str, str, pd.Series]]:
    """Name, unit and changes of what the uplink does: bits in the queue, power, and pRBs where they are recorded."""
    recorded, slot_ns = run.experiment.trace.slots, run.experiment.slots.slot_ns
    queued = [order for order in orders if "upload_offered" in order]
    lost = [order["update_lost"] for order in queued if "update_lost" in order]
    queue = [_changes((order["upload_offered"]["time_ns"], order["upload_offered"]["bits"]) for order in queued)]
    queue.append(_changes((event["time_ns"], -event["bits_left"]) for event in lost))
    if recorded not in ("full", "uploads"):
        outcomes = [outcome for order in queued if (outcome := outcome_of(order))]
        received = _changes((event["time_ns"], -event["bits"]) for event in outcomes)
        yield "queue, whole updates until their outcome", "bit", pd.concat([*queue, received])
        yield "transmit power, mean over each upload", "W", _changes(_mean_power(orders))
        return
    rows = run.table("slots" if recorded == "full" else "uploads")
    if recorded == "full":
        start_ns, width_ns, share, names = rows["slot"] * slot_ns, slot_ns, pd.Series(1.0, rows.index), ("", "")
        sent = rows["bits_left"].clip(upper=rows["rate_bps"] * to_s(slot_ns))
        left = [(event["cv"], event["time_ns"] // slot_ns) for event in lost if event["time_ns"] % slot_ns]
        sent = sent.mask(pd.MultiIndex.from_frame(rows[["cv", "slot"]]).isin(left), 0.0)  # energy, but no bits
    else:
        start_ns, width_ns, share = rows["time_ns"], BIN_NS, rows["slots"] * slot_ns / BIN_NS
        sent, names = rows["bits"], (", every 50 ms", ", mean over 50 ms")
    yield f"queue{names[0]}", "bit", pd.concat([*queue, -sent.set_axis(start_ns + width_ns)])
    for name, unit, column in (("transmit power", "W", "power_w"), ("pRBs used", "pRBs", "prbs")):
        value = (share * rows[column]).astype(float)
        pulses = [value.set_axis(start_ns), -value.set_axis(start_ns + width_ns)]
        yield f"{name}{names[1]}", unit, pd.concat(pulses)


def _mean_power(orders: Iterable[Order]) -> Iterator[tuple[int, float]]:
    """Changes of the transmit power if each upload has its mean power from its first slot to its outcome."""
    for order in orders:
        started, outcome = order.get("upload_started"), outcome_of(order)
        if started and outcome and outcome["time_ns"] > started["time_ns"]:
            power_w = _transmit_j(order) / to_s(outcome["time_ns"] - started["time_ns"])
            yield started["time_ns"], power_w
            yield outcome["time_ns"], -power_w


def _changes(changes: Iterable[tuple[int, float]]) -> pd.Series:
    pairs = [*changes]
    return pd.Series([change for _, change in pairs], pd.Index([time_ns for time_ns, _ in pairs], dtype="int64"), float)


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


def _is_in(rounds: range | None, event: Event) -> bool:
    return rounds is None or event["round"] in rounds


def _place(event: Event) -> tuple[int, int]:
    """Sort key by time; at the same time, in the order of the trace."""
    return event["time_ns"], event["id"]


def _text(text: str) -> str:
    """A text that came with a run: in one line, and short."""
    return printable(text[:_MAX_TEXT])[:_MAX_TEXT]
