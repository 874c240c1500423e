"""The timeline of a run as a Perfetto trace: tracks for the server, the gNB and every CV.

    server   rounds; orders, aggregations and evaluations as instants; CVs in coverage
    gNB      times in which it has updates to receive; queue, power and pRBs
    CV n     times in coverage; in them training, waiting and upload of each order; losses and refusals as instants

Arrows lead from an order to its training, its upload, and its aggregation or loss.
"""

from collections.abc import Iterator
from io import BytesIO
from itertools import groupby
from pathlib import Path

from vefl_sim.analysis.perfetto.counters import coverage_counter, uplink_counters
from vefl_sim.analysis.perfetto.orders import Event, Order, events_in, notes_of, orders_in, rows_of
from vefl_sim.analysis.perfetto.packets import TraceWriter, require_perfetto
from vefl_sim.core.errors import BadInput, CannotWrite, first_line
from vefl_sim.core.files import atomic_file
from vefl_sim.protocol.trace import DEPARTURES
from vefl_sim.records.run_directory import Run

_ENDINGS = (".perfetto-trace", ".pftrace")
_REFUSALS = {"cv_passed_over": "passed over", "cv_ineligible": "ineligible"}
_DECISIONS = {
    "training_ordered": "orders",
    "update_aggregated": "aggregation",
    "model_aggregated": "aggregation",
    "model_evaluated": "evaluation",
}
_LAST_ID = 1 << 63  # after every event of its instant


def write_timeline(run: Run, file: Path | None = None, rounds: range | None = None) -> Path:
    """Write the timeline of a run, or of some of its rounds, to a file; the default is one in the run directory.

    Returns the path. Its ending must be one of Perfetto's, so that no table and no experiment is ever overwritten.
    """
    require_perfetto()
    name = f"timeline_{rounds.start}-{rounds.stop - 1}" if rounds else "timeline"
    path = file or run.path / (name + _ENDINGS[0])
    if not path.name.endswith(_ENDINGS):
        raise BadInput(f"{path} cannot be written: the name of a timeline must end with {' or '.join(_ENDINGS)}.")
    content = BytesIO()
    _Timeline(run, rounds, TraceWriter(content)).write()
    try:
        with atomic_file(path) as partial:
            partial.write_bytes(content.getbuffer())
    except CannotWrite as error:
        reason = first_line(error.__cause__ or error)
        raise BadInput(f"{path} cannot be written ({reason}): choose another file.") from None
    return path


class _Timeline:
    """The events of a run, or of some of its rounds, and the tracks on which they are drawn."""

    def __init__(self, run: Run, rounds: range | None, writer: TraceWriter) -> None:
        self.run, self.writer = run, writer
        self.all_events = events_in(run.events)
        self.all_orders = orders_in(self.all_events)
        self.events = [event for event in self.all_events if rounds is None or event.get("round") in rounds]
        self.orders = [order for order in self.all_orders if rounds is None or order.ordered.get("round") in rounds]
        if rounds and not self.events:
            last = max((event["round"] for event in self.all_events if "round" in event), default=0)
            span = f"1 to {last}" if last else "none"
            raise BadInput(f"There is no such round in {run.path}: choose among the recorded rounds ({span}).")
        self.first_ns = self.events[0]["time_ns"] if rounds else 0
        self.last_ns = self.events[-1]["time_ns"] if self.events else 0

    def write(self) -> None:
        """Write all tracks, then counters, then slices and instants in the order of time."""
        top = self.writer.track(self.run.path.resolve().name)
        server, gnb, cvs = (self.writer.track(name, top) for name in ("server", "gNB", "CVs"))
        visits = [*self._visits()]
        numbers = {event["cv"] for event in (*self.events, *(entered for entered, _ in visits)) if "cv" in event}
        tracks = {cv: self.writer.track(f"CV {cv}", cvs) for cv in sorted(numbers)}
        self._counters(server, gnb)
        self._rounds(server)
        self._decisions(server)
        self._reception(gnb)
        for entered, left in visits:
            self.writer.slice(tracks[entered["cv"]], "in coverage", entered, left, notes_of(entered))
        for event in self.events:
            if event["kind"] in _REFUSALS and "cv" in event:
                self.writer.instant(tracks[event["cv"]], _REFUSALS[event["kind"]], event, notes_of(event))
        for order in self.orders:
            if "cv" in order.ordered:
                self._order(tracks[order.ordered["cv"]], order)
        self.writer.close()

    def _counters(self, server: int, gnb: int) -> None:
        counters = [(server, coverage_counter(self.all_events))]
        counters += [(gnb, counter) for counter in uplink_counters(self.run, self.all_orders)]
        for parent, counter in counters:
            track = self.writer.track(counter.name, parent, unit=counter.unit)
            for time_ns, value in counter.within(self.first_ns, self.last_ns):
                self.writer.count(track, time_ns, value)

    def _rounds(self, server: int) -> None:
        """Rounds, or windows where there are none, with their rows in the rounds table if they have ended."""
        rows = {row["round"]: row for row in rows_of(self.run.rounds) if "round" in row}
        ended = {event.get("round"): event for event in self.events if event["kind"] == "round_ended"}
        for event in self.events:
            if event["kind"] == "round_started":
                k = event.get("round")
                name = f"{'window' if 'version' in event else 'round'} {k}"
                self.writer.slice(server, name, event, ended.get(k), notes_of(rows.get(k, event)))

    def _decisions(self, server: int) -> None:
        """Orders and aggregations, those of one instant together, and evaluations."""
        numbers = {order.ordered["id"]: order.number for order in self.orders}
        numbers |= {event["id"]: o.number for o in self.orders if (event := o.later.get("update_aggregated"))}
        decisions = [event for event in self.events if event["kind"] in _DECISIONS]
        for (_, name), group in groupby(decisions, lambda event: (event["time_ns"], _DECISIONS[event["kind"]])):
            together = [*group]
            flows = [numbers[event["id"]] for event in together if event["id"] in numbers]
            if name == "orders":
                self.writer.instant(server, name, together[0], {"count": len(together)}, flows)
            else:
                self.writer.instant(server, name, together[-1], notes_of(together[-1]), ended=flows)

    def _reception(self, gnb: int) -> None:
        """Times in which at least one update is offered and neither received nor lost."""
        changes = [(order.offered, 1) for order in self.orders if order.offered]
        changes += [(order.outcome, -1) for order in self.orders if order.offered and order.outcome]
        queued, since, notes = 0, Event(), dict[str, float]()
        for event, change in sorted(changes, key=lambda pair: _place(pair[0])):
            if not queued:
                since, notes = event, {"updates": 0, "bits": 0.0}
            queued += change
            notes["updates"] += change > 0
            notes["bits"] += event.get("bits", 0.0) if change < 0 else 0.0
            if not queued:
                self.writer.slice(gnb, "receiving", since, event, notes)
        if queued:
            self.writer.slice(gnb, "receiving", since, None, notes)

    def _visits(self) -> Iterator[tuple[Event, Event]]:
        """The times of each CV in coverage, from an event to another, cut to the time that is drawn."""
        inside, visits = dict[int, Event](), list[tuple[Event, Event]]()
        for event in self.all_events:
            if event["kind"] == "coverage_entered" and "cv" in event:
                inside[event["cv"]] = event
            elif event["kind"] in DEPARTURES and event.get("cv") in inside:
                visits.append((inside.pop(event["cv"]), event))
        first, last = {"time_ns": self.first_ns, "id": 0}, {"time_ns": self.last_ns, "id": _LAST_ID}
        for entered, left in (*visits, *((entered, last) for entered in inside.values())):
            if entered["time_ns"] <= self.last_ns and left["time_ns"] >= self.first_ns:
                yield max(entered, entered | first, key=_place), min(left | {"id": _LAST_ID}, last, key=_place)

    def _order(self, track: int, order: Order) -> None:
        """The phases of an order, and its loss."""
        lost = order.later.get("update_lost")
        for phase in order.phases():
            name = f"{phase.name}, lost" if lost and phase.end is lost else phase.name
            self.writer.slice(track, name, phase.begin, phase.end, phase.notes, [order.number])
        if lost:
            name = f"lost: {lost.get('reason')}"
            self.writer.instant(track, name, lost, notes_of(lost), ended=[order.number])


def _place(event: Event) -> tuple[int, int]:
    """Sort key by time; at the same time, in the order of the trace."""
    return event["time_ns"], event["id"]
