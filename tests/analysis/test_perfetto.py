"""Timelines for Perfetto, decoded with its own protocol buffers and compared with the tables of the run."""

import json
from collections import Counter as TallyOf
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from tests.command_line import call
from tests.protocol.test_golden import EXPERIMENT
from tests.resumable import STOPPED, Kill, Killer, only
from vefl_sim import Run, from_tables, simulate, with_settings
from vefl_sim.analysis.timeline import write_timeline
from vefl_sim.core.tables import TableWriter
from vefl_sim.records.schemas import SCHEMAS
from vefl_sim.records.table_parts import table_digests


@dataclass
class Slice:
    """A slice or an instant, which has no duration."""

    track: str
    name: str
    begin_ns: int
    notes: dict[str, Any]
    flows: list[int]
    end_ns: int | None = None
    inside: "Slice | None" = None

    @property
    def dur_ns(self) -> int:
        assert self.end_ns is not None
        return self.end_ns - self.begin_ns


@dataclass
class Decoded:
    """A timeline as Perfetto reads it."""

    parents: dict[str, str] = field(default_factory=dict)  # of tracks, by name
    slices: list[Slice] = field(default_factory=list)
    instants: list[Slice] = field(default_factory=list)
    counters: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    flows: dict[int, list[Slice]] = field(default_factory=lambda: defaultdict(list))  # in the order of their arrows
    ended: dict[int, Slice] = field(default_factory=dict)

    def named(self, name: str) -> list[Slice]:
        return [one for one in (*self.slices, *self.instants) if one.name == name or one.name.startswith(f"{name},")]


def decoded(path: Path) -> Decoded:
    """Decode a timeline as Perfetto does: by time, then by place in the file; an end closes the innermost slice."""
    trace, result = Trace(), Decoded()
    trace.ParseFromString(path.read_bytes())
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    assert len({track.name for track in tracks.values()}) == len(tracks)
    result.parents = {t.name: tracks[t.parent_uuid].name if t.parent_uuid else "" for t in tracks.values()}
    opened: dict[str, list[Slice]] = defaultdict(list)
    packets = [packet for packet in trace.packet if packet.HasField("track_event")]
    assert all(packet.trusted_packet_sequence_id and packet.HasField("timestamp") for packet in packets)
    for packet in sorted(packets, key=lambda packet: packet.timestamp):
        event = packet.track_event
        track, time_ns = tracks[event.track_uuid].name, packet.timestamp
        assert tracks[event.track_uuid].HasField("counter") == (event.type == TrackEvent.TYPE_COUNTER)
        if event.type == TrackEvent.TYPE_COUNTER:
            result.counters[track].append((time_ns, event.double_counter_value))
            continue
        if event.type == TrackEvent.TYPE_SLICE_END:
            opened[track].pop().end_ns = time_ns
            continue
        notes = {note.name: getattr(note, note.WhichOneof("value")) for note in event.debug_annotations}
        flows = [*event.flow_ids, *event.terminating_flow_ids]
        one = Slice(track, event.name, time_ns, notes, flows, inside=opened[track][-1] if opened[track] else None)
        for flow in flows:
            assert flow not in result.ended
            result.flows[flow].append(one)
        result.ended |= dict.fromkeys(event.terminating_flow_ids, one)
        if event.type == TrackEvent.TYPE_INSTANT:
            result.instants.append(one)
        else:
            result.slices.append(one)
            opened[track].append(one)
    return result


def integral(counter: list[tuple[int, float]]) -> float:
    times, values = np.array(counter).T
    return float(np.sum(np.diff(times) * values[:-1]) / 1e9)


def values_at(counter: list[tuple[int, float]], times_ns: Any) -> list[float]:
    times, values = np.array(counter).T
    return values[np.searchsorted(times, np.asarray(times_ns), side="right") - 1].tolist()


def lost(timeline: Decoded) -> list[Slice]:
    return [one for one in timeline.instants if one.name.startswith("lost: ")]


def check(run: Run, timeline: Decoded, rounds: range | None = None) -> None:
    """Compare counts, times, joules, bits, money and arrows with the tables."""
    events, table, vehicles = run.events, run.rounds, run.vehicles
    if rounds is not None:
        events, table, vehicles = (rows[rows["round"].isin([*rounds])] for rows in (events, table, vehicles))
    kinds = TallyOf(events["kind"])
    drawn = [one for one in timeline.slices if one.track == "server"]
    assert [(one.begin_ns, one.end_ns) for one in drawn] == [*zip(table["start_ns"], table["end_ns"], strict=True)]
    assert [one.notes["energy_j"] for one in drawn] == table["energy_j"].tolist()
    assert values_at(timeline.counters["CVs in coverage"], table["start_ns"]) == table["in_coverage"].tolist()
    trained = {(int(one.track[3:]), one.begin_ns): one for one in timeline.named("training")}
    assert len(trained) == len(timeline.named("training")) == kinds["training_ordered"]
    assert len(timeline.named("upload")) == kinds["upload_started"]
    assert sum(len(one.flows) for one in timeline.named("orders")) == kinds["training_ordered"]
    assert sum(len(one.flows) for one in timeline.named("aggregation")) == kinds["update_aggregated"]
    assert len(timeline.named("passed over")) == kinds["cv_passed_over"]
    assert len(timeline.named("ineligible")) == kinds["cv_ineligible"]
    assert len(timeline.named("evaluation")) == kinds["model_evaluated"]
    drawn = [one.notes["weight"] for one in timeline.slices if one.track != "server" and "weight" in one.notes]
    assert sum(drawn) == pytest.approx(events[events["kind"] == "update_aggregated"]["weight"].sum())
    reasons = TallyOf(events[events["kind"] == "update_lost"]["reason"])
    assert TallyOf(one.name.removeprefix("lost: ") for one in lost(timeline)) == reasons
    orders = vehicles[vehicles["state"].isin(["delivered", "lost"])]
    assert {(row.cv, row.ordered_ns) for row in orders.itertuples()} == trained.keys()
    for row in orders.itertuples():
        check_order(row, timeline, trained[row.cv, row.ordered_ns])


def check_order(row: Any, timeline: Decoded, training: Slice) -> None:
    """Compare the slices of one order with its row in the vehicles table."""
    ordered, *phases = timeline.flows[training.flows[0]]
    assert (ordered.track, ordered.begin_ns, phases[0]) == ("server", row.ordered_ns, training)
    mine = [one for one in phases if one.track == f"CV {row.cv}"]
    assert all(one.inside and one.inside.name == "in coverage" for one in mine)
    assert ordered.inside
    assert ordered.inside.notes["round"] == row.round
    assert sum(one.dur_ns for one in mine if one.end_ns is not None) == row.delay_ns
    assert training.notes["energy_j"] == pytest.approx(row.compute_j, rel=1e-12)
    assert (training.notes["iterations"], training.notes["distance_m"]) == (row.iterations, row.distance_m)
    uploads = [one for one in mine if one.name.startswith("upload")]
    assert len(uploads) == (row.tx_slots > 0)
    for upload in uploads:
        assert upload.notes["energy_j"] == pytest.approx(row.transmit_j, rel=1e-9)
        share = upload.notes["bits"] / (upload.notes["bits"] + upload.notes["bits_left"])
        assert share == pytest.approx(row.delivered_fraction)
        assert (upload.notes["slots"], upload.notes["cost"]) == (row.tx_slots, row.paid)
    if row.state == "lost":
        *_, last, outcome = phases
        assert outcome.name == f"lost: {row.reason}"
        assert outcome.notes["cost"] == row.paid
        assert last.name.endswith(", lost")
    else:
        assert not any("lost" in one.name for one in phases)


OUTCOMES = ["upload_received", "update_lost"]
SHORT = with_settings(
    STOPPED, "run.rounds=4", "learning.kind=none", "trace.slots=off", "roads.signals=none", "radio.max_tx_power_w=1e-5"
)
"""A small run in which some updates are lost, because transmitters are weak."""
SCHEMES = {
    "fdpc": ["scheme.kind=fdpc"],
    "fedbuff": ["scheme.kind=fedbuff"],
    "unconstrained": ["scheme.constrained=false"],
    "broadcast": ["scheme.selected=4", "downlink.kind=broadcast"],
}


@pytest.mark.parametrize("settings", SCHEMES.values(), ids=SCHEMES)
def test_every_scheme(settings: list[str], tmp_path: Path) -> None:
    run = simulate(with_settings(SHORT, *settings), out=tmp_path)
    timeline = decoded(write_timeline(run))
    check(run, timeline)
    power = timeline.counters["transmit power, mean over each upload"]
    assert integral(power) == pytest.approx(run.vehicles["transmit_j"].sum(), rel=1e-9)
    assert "pRBs used" not in timeline.parents


def test_the_golden_run(golden: Run) -> None:
    timeline = decoded(write_timeline(golden))
    check(golden, timeline)
    top = golden.path.name
    assert timeline.parents.items() >= {top: "", "server": top, "gNB": top, "CVs": top, "CV 2": "CVs"}.items()
    assert timeline.parents.keys() >= {"CVs in coverage", "transmit power", "pRBs used"}
    [departure] = [one for one in lost(timeline) if one.begin_ns < 1e9]
    assert (departure.track, departure.name) == ("CV 3", "lost: coverage_left")
    assert [one.inside for one in timeline.named("aggregation")] == [None, None]  # at the end of their rounds
    path = [[one.name for one in timeline.flows[flow]] for flow in sorted(timeline.flows)]
    assert path == [
        ["orders", "training", "upload", "aggregation"],
        ["orders", "training", "upload", "aggregation"],
        ["orders", "training, lost", "lost: coverage_left"],
        ["orders", "training", "upload", "aggregation"],
        ["orders", "training", "upload, lost", "lost: round_ended"],
    ]
    assert {value for _, value in timeline.counters["pRBs used"]} == {0.0, 2.0}
    assert integral(timeline.counters["transmit power"]) == pytest.approx(golden.vehicles["transmit_j"].sum())
    [visit] = [one for one in timeline.named("in coverage") if one.track == "CV 3"]
    assert visit.end_ns == departure.begin_ns


LEAVES = with_settings(  # the third CV leaves within a slot of its upload
    from_tables(EXPERIMENT), "radio.max_tx_power_w=8e-6", "mac.start=ready", "sla.cpu_max_hz=[1e9, 1e9]",
    "vefl.max_local_iterations=4",
)  # fmt: skip


def test_counters_follow_every_slot(tmp_path: Path) -> None:
    run = simulate(with_settings(LEAVES, "trace.slots=full"), out=tmp_path)
    timeline = decoded(write_timeline(run))
    check(run, timeline)
    in_slots = run.table("slots").groupby("slot")[["prbs", "power_w"]].sum()
    starts_ns = in_slots.index.to_numpy() * run.experiment.slots.slot_ns
    assert values_at(timeline.counters["pRBs used"], starts_ns) == in_slots["prbs"].tolist()
    assert values_at(timeline.counters["transmit power"], starts_ns) == pytest.approx(in_slots["power_w"].tolist())


def test_power_is_the_energy_of_uploads_in_bins_of_50_ms(tmp_path: Path) -> None:
    run = simulate(with_settings(SHORT, "scheme.kind=fdpc", "trace.slots=uploads"), out=tmp_path)
    timeline = decoded(write_timeline(run))
    power = timeline.counters["transmit power, mean over 50 ms"]
    assert integral(power) == pytest.approx(run.vehicles["transmit_j"].sum(), rel=1e-9)
    assert max(value for _, value in timeline.counters["pRBs used, mean over 50 ms"]) > 0


def test_rounds_are_cut_out(tmp_path: Path) -> None:
    run = simulate(with_settings(SHORT, "scheme.kind=afa-cd"), out=tmp_path)
    timeline = decoded(write_timeline(run, rounds=range(2, 4)))
    check(run, timeline, range(2, 4))
    start_ns = run.rounds["start_ns"][1]
    assert min(one.begin_ns for one in timeline.slices) == start_ns
    assert all(counter[0][0] == start_ns for counter in timeline.counters.values())
    assert {path.name for path in run.path.glob("*.perfetto-trace")} == {"timeline_2-3.perfetto-trace"}


def test_a_run_that_is_not_done(tmp_path: Path) -> None:
    with pytest.raises(Kill):
        simulate(with_settings(SHORT, "scheme.kind=fedbuff"), out=tmp_path, watcher=Killer(3))
    run = only(tmp_path)
    timeline = decoded(write_timeline(run))
    assert len(timeline.named("training")) == (run.events["kind"] == "training_ordered").sum() > 0
    concluded = run.events["kind"].isin(OUTCOMES).sum()
    in_progress = {one.track for one in timeline.slices if one.end_ns is None and one.track.startswith("CV ")}
    assert len(in_progress) == len(timeline.named("training")) - concluded > 0
    drawn = [one for one in timeline.slices if one.track == "server"]
    assert [one.notes.get("cost") for one in drawn[: len(run.rounds)]] == run.rounds["cost"].tolist() != []


def test_the_command(golden: Run, tmp_path: Path) -> None:
    path = copytree(golden.path, tmp_path / "runs" / golden.path.name)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    done = call("trace", "three-cars", "--perfetto", cwd=tmp_path)
    assert (done.returncode, "timeline.perfetto-trace (0.0 MB): open it at https://" in done.stdout) == (0, True)
    check(golden, decoded(path / "timeline.perfetto-trace"))
    assert call("trace", "three-cars", "--perfetto", "second.pftrace", "--round", 2, cwd=tmp_path).returncode == 0
    check(golden, decoded(tmp_path / "second.pftrace"), range(2, 3))
    assert all(file.read_bytes() == content for file, content in before.items())
    assert Run(path).content_digest() == golden.content_digest()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--perfetto", "{run}/tables/events.parquet"], "must end with .perfetto-trace or .pftrace"),
        (["--perfetto", "missing/x.pftrace"], "missing/x.pftrace cannot be written (No such file or directory)"),
        (["--perfetto", "--round", "7"], "--round 7: no event of this run has such a round"),
        (["--perfetto", "--cv", "1"], "use only --round with it"),
        (["x.pftrace"], "a file is written only with --perfetto"),
        (["--why"], "add --cv and one --round to choose it (lost, for example: --cv "),
        (["--round", "one"], "--round one: write a number or a range"),
    ],
)
def test_bad_input_is_one_sentence(golden: Run, tmp_path: Path, arguments: list[str], words: str) -> None:
    before = {file: file.stat().st_mtime_ns for file in golden.path.rglob("*")}
    failed = call("trace", golden.path, *(text.format(run=golden.path) for text in arguments), cwd=tmp_path)
    assert failed.returncode == 2
    [line] = failed.stderr.splitlines()
    assert words in line
    assert {file: file.stat().st_mtime_ns for file in golden.path.rglob("*")} == before


def test_names_and_values_of_a_stranger_are_short_lines(golden: Run, tmp_path: Path) -> None:
    path = copytree(golden.path, tmp_path / f"<script>alert(1)</script>{'x' * 200}")
    events = golden.events
    events["reason"] = events["reason"].where(events["kind"] != "update_lost", "\x1b[2J\n" + "y" * 4000)
    writer = TableWriter(path / "tables" / "events.parquet", SCHEMAS["events"])
    for row in events.astype(object).where(events.notna(), None).to_dict("records"):
        writer.append(row)
    writer.close()
    digests = {"table_digests": table_digests(path)}
    (path / "summary.json").write_text(json.dumps(golden.summary | digests))
    timeline = decoded(write_timeline(Run(path)))
    texts = [*timeline.parents, *(text for one in timeline.instants for text in (one.name, *one.notes.values()))]
    assert all(text.isprintable() and len(text) <= 200 for text in texts if isinstance(text, str))
    assert [one.name[:15] for one in lost(timeline)] == [r"lost: \x1b[2J\n"] * 2
