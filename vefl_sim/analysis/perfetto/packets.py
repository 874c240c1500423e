"""Writes a trace in Perfetto's own format: tracks, and on them slices, instants, counters and the arrows of flows.

A trace is a sequence of packets (protocol buffers), each the description of a track or an event on one. Perfetto sorts
the events by time; those of the same time keep their order in the file.
"""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import IO, Any

from vefl_sim.core.errors import BadInput, printable

Notes = Mapping[str, Any]
"""Values that Perfetto shows for a slice or an instant, by their names."""
Event = Mapping[str, Any]
"""An event of the run, of which only `time_ns` and `id` are used: the latter orders what happens at the same time."""

_MAX_TEXT = 200  # characters of a name or a value; a run may come from anywhere
_SEQUENCE = 1  # all packets are from one writer


def require_perfetto() -> None:
    """Raise BadInput if the package that knows Perfetto's format is not installed."""
    try:
        import perfetto.trace_builder.proto_builder  # noqa: F401
    except ModuleNotFoundError:
        raise BadInput("Timelines need the package perfetto: pip install 'vefl_sim[report]'.") from None


class TraceWriter:
    """Writes tracks and counters at once, slices and instants in the order in which they happened at the end."""

    def __init__(self, file: IO[bytes]) -> None:
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackDescriptor, TrackEvent
        from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

        self._builder, self._kinds, self._orderings = StreamingTraceProtoBuilder(file), TrackEvent, TrackDescriptor
        self._tracks, self._collected = 0, list[tuple[int, int, Any]]()

    def track(self, name: str, parent: int | None = None, *, unit: str | None = None) -> int:
        """Add a track below its earlier siblings; one with a unit is a counter. Returns its number."""
        self._tracks += 1
        packet = self._builder.create_packet()
        track = packet.track_descriptor
        track.uuid, track.name = self._tracks, _text(name)
        track.child_ordering, track.sibling_order_rank = self._orderings.EXPLICIT, self._tracks
        if parent is not None:
            track.parent_uuid = parent
        if unit is not None:
            track.counter.unit_name = unit
        self._builder.write_packet(packet)
        return self._tracks

    def count(self, track: int, time_ns: int, value: float) -> None:
        """Set a counter to a value."""
        packet = self._packet(track, time_ns, self._kinds.TYPE_COUNTER)
        packet.track_event.double_counter_value = value
        self._builder.write_packet(packet)

    def slice(
        self, track: int, name: str, begin: Event, end: Event | None, notes: Notes, flows: Iterable[int] = ()
    ) -> None:
        """Add a slice within those around it; without an end it is drawn to the end of the trace.

        Arrows lead from one slice or instant of a flow to the next.
        """
        packet = self._named(track, begin, self._kinds.TYPE_SLICE_BEGIN, name, notes)
        packet.track_event.flow_ids.extend(flows)
        if end is not None:
            self._collect(end, self._packet(track, end["time_ns"], self._kinds.TYPE_SLICE_END))

    def instant(
        self, track: int, name: str, at: Event, notes: Notes, flows: Iterable[int] = (), ended: Iterable[int] = ()
    ) -> None:
        """Add an instant, at which the flows `ended` end."""
        packet = self._named(track, at, self._kinds.TYPE_INSTANT, name, notes)
        packet.track_event.flow_ids.extend(flows)
        packet.track_event.terminating_flow_ids.extend(ended)

    def close(self) -> None:
        """Write the slices and instants."""
        for *_, packet in sorted(self._collected, key=itemgetter(0, 1)):
            self._builder.write_packet(packet)

    def _named(self, track: int, event: Event, kind: int, name: str, notes: Notes) -> Any:
        packet = self._packet(track, event["time_ns"], kind)
        packet.track_event.name = _text(name)
        for key, value in notes.items():
            note = packet.track_event.debug_annotations.add(name=key)
            if isinstance(value, str):
                note.string_value = _text(value)
            elif isinstance(value, bool):
                note.bool_value = value
            elif isinstance(value, int):
                note.int_value = value
            else:
                note.double_value = value
        self._collect(event, packet)
        return packet

    def _collect(self, event: Event, packet: Any) -> None:
        self._collected.append((event["time_ns"], event["id"], packet))

    def _packet(self, track: int, time_ns: int, kind: int) -> Any:
        packet = self._builder.create_packet()
        packet.timestamp, packet.trusted_packet_sequence_id = time_ns, _SEQUENCE
        packet.track_event.type, packet.track_event.track_uuid = kind, track
        return packet


def _text(text: str) -> str:
    """A text that came with a run: in one line, and short."""
    return printable(text[:_MAX_TEXT])[:_MAX_TEXT]
