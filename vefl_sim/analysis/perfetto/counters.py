"""Quantities of a run over time: CVs in coverage, and what the uplink does, as exactly as the run recorded it.

With `trace.slots = "full"` the uplink is known slot by slot, with "uploads" in bins of 50 ms. Otherwise only the events
are known: transmit power is a mean over each upload, an update stays in the queue as a whole until its outcome, and
nothing is said about pRBs. In each case the integral of the power is the energy of the transmissions.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vefl_sim.analysis.perfetto.orders import Event, Order
from vefl_sim.core.arrays import Bools, Floats, Ints
from vefl_sim.core.clock import to_s
from vefl_sim.protocol.trace import DEPARTURES
from vefl_sim.records.run_directory import Run
from vefl_sim.records.upload_bins import BIN_NS

Changes = tuple[Ints, Floats]
"""Times in ns, and by how much a quantity changes at each."""


@dataclass(frozen=True)
class Counter:
    """A quantity that is constant between the times at which it changes, and 0 before the first."""

    name: str
    unit: str
    time_ns: Ints
    value: Floats

    @classmethod
    def summed(cls, name: str, unit: str, *changes: Changes) -> "Counter":
        """The sum of all changes so far; what rounding leaves of it counts as 0."""
        time_ns, change = (np.concatenate(parts) for parts in zip(*changes, strict=True))
        order = np.argsort(time_ns, kind="stable")
        total = np.cumsum(change[order])
        total[np.abs(total) < 1e-9 * np.abs(change).max(initial=0.0)] = 0.0
        last = np.flatnonzero(np.diff(time_ns[order], append=-1))  # of the changes at the same time
        return cls(name, unit, time_ns[order][last], total[last])

    @classmethod
    def binned(cls, name: str, unit: str, start_ns: Ints, value: Floats, bin_ns: int) -> "Counter":
        """The sum of the values of each bin, by the start of the bin; 0 in bins without a value."""
        starts, bins = np.unique(start_ns, return_inverse=True)
        ends = np.setdiff1d(starts + bin_ns, starts)
        time_ns = np.concatenate([starts, ends])
        order = np.argsort(time_ns)
        sums = np.bincount(bins, value, len(starts))
        return cls(name, unit, time_ns[order], np.concatenate([sums, np.zeros(len(ends))])[order])

    def within(self, first_ns: int, last_ns: int) -> Iterator[tuple[int, float]]:
        """Its value at the first of two times, and its changes until the last."""
        begin, end = (int(np.searchsorted(self.time_ns, time, side="right")) for time in (first_ns, last_ns))
        value = float(self.value[begin - 1]) if begin else 0.0
        yield first_ns, value
        for time, new in zip(self.time_ns[begin:end].tolist(), self.value[begin:end].tolist(), strict=True):
            if new != value:
                yield time, new
            value = new


def coverage_counter(events: Iterable[Event]) -> Counter:
    """The number of CVs in coverage."""
    signs = {"coverage_entered": 1.0} | dict.fromkeys(DEPARTURES, -1.0)
    crossed = [(event["time_ns"], signs[event["kind"]]) for event in events if event["kind"] in signs]
    return Counter.summed("CVs in coverage", "CVs", _changes(crossed))


def uplink_counters(run: Run, orders: list[Order]) -> Iterator[Counter]:
    """What the uplink does: bits in the queue, transmit power, and the pRBs in use where the run recorded them."""
    recorded, slot_ns = run.experiment.trace.slots, run.experiment.slots.slot_ns
    if recorded == "full":
        slots = run.table("slots").dropna(subset=["slot", "cv", "prbs", "power_w", "rate_bps", "bits_left"])
        start_ns = slots["slot"].to_numpy(np.int64) * slot_ns
        sent = np.minimum(slots["bits_left"].to_numpy(float), slots["rate_bps"].to_numpy(float) * to_s(slot_ns))
        sent[_lost_within(slots, orders, slot_ns)] = 0.0
        yield _queue("queue", orders, (start_ns + slot_ns, -sent))
        yield Counter.binned("transmit power", "W", start_ns, slots["power_w"].to_numpy(float), slot_ns)
        yield Counter.binned("pRBs used", "pRBs", start_ns, slots["prbs"].to_numpy(float), slot_ns)
    elif recorded == "uploads":
        bins = run.table("uploads").dropna()
        start_ns, share = bins["time_ns"].to_numpy(np.int64), bins["slots"].to_numpy(float) * slot_ns / BIN_NS
        yield _queue("queue, every 50 ms", orders, (start_ns + BIN_NS, -bins["bits"].to_numpy(float)))
        power_w, prbs = (share * bins[name].to_numpy(float) for name in ("power_w", "prbs"))
        yield Counter.binned("transmit power, mean over 50 ms", "W", start_ns, power_w, BIN_NS)
        yield Counter.binned("pRBs used, mean over 50 ms", "pRBs", start_ns, prbs, BIN_NS)
    else:
        outcomes = [event for order in orders if order.offered and (event := order.outcome)]
        received = [(event["time_ns"], -event.get("bits", 0.0)) for event in outcomes]
        yield _queue("queue, whole updates until their outcome", orders, _changes(received))
        yield Counter.summed("transmit power, mean over each upload", "W", _changes(_mean_power(orders)))


def _queue(name: str, orders: list[Order], sent: Changes) -> Counter:
    """The bits of all updates that were offered and are not received or lost yet, given what was `sent`."""
    queued = [order for order in orders if order.offered]
    offered = [(event["time_ns"], event.get("bits", 0.0)) for order in queued if (event := order.offered)]
    losses = [event for order in queued if (event := order.later.get("update_lost"))]
    lost = [(event["time_ns"], -event.get("bits_left", 0.0)) for event in losses]
    return Counter.summed(name, "bit", _changes(offered), sent, _changes(lost))


def _mean_power(orders: list[Order]) -> Iterator[tuple[int, float]]:
    """Changes of the transmit power if each upload has its mean power from its first slot to its outcome."""
    for order in orders:
        started, outcome = order.later.get("upload_started"), order.outcome
        if started and outcome and outcome["time_ns"] > started["time_ns"]:
            power_w = order.transmit_j / to_s(outcome["time_ns"] - started["time_ns"])
            yield started["time_ns"], power_w
            yield outcome["time_ns"], -power_w


def _lost_within(slots: pd.DataFrame, orders: list[Order], slot_ns: int) -> Bools:
    """Rows of slots during which the CV left: it used its energy, but delivered no bits."""
    lost = [event for order in orders if (event := order.later.get("update_lost"))]
    ended = [(event.get("cv"), event["time_ns"] // slot_ns) for event in lost if event["time_ns"] % slot_ns]
    return pd.MultiIndex.from_frame(slots[["cv", "slot"]]).isin(ended)


def _changes(changes: Iterable[tuple[int, float]]) -> Changes:
    pairs = [*changes]
    return np.array([time for time, _ in pairs], np.int64), np.array([change for _, change in pairs], float)
