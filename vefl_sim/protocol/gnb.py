"""The gNB: broadcasts the model, and receives updates slot by slot while any CV has bits to send."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from simpy import Event

from vefl_sim.core.clock import SlotGrid
from vefl_sim.core.state import SavedAttributes, State, from_state
from vefl_sim.protocol.instants import Instant, NanosecondEnvironment, Precedence, Signal
from vefl_sim.protocol.ledger import Account, Ledger
from vefl_sim.protocol.mac import Burst, MacScheduler
from vefl_sim.protocol.messages import Broadcast, TrainOrder
from vefl_sim.protocol.trace import Trace, UploadOffered, UploadStarted
from vefl_sim.protocol.uplink import Uplink, Upload
from vefl_sim.radio.link import Downlink, Link
from vefl_sim.schemes.observation import CoverageSnapshot, Observation
from vefl_sim.schemes.scheme import Plan


class Arrival(NamedTuple):
    """Bits that a CV has sent in the last slot of a burst, and that the gNB has received."""

    cv: int
    bits: float


@dataclass
class GNodeB:
    """The gNB with the uplink buffers of the CVs and the MAC scheduler that empties them."""

    env: NanosecondEnvironment
    grid: SlotGrid
    mac: MacScheduler
    ledger: Ledger
    trace: Trace
    wait_for_tau: bool  # mac.start = "tau": serve a CV from slot τ_v on, not as soon as it is ready
    is_on: bool = True  # else no CV gets a pRB

    def __post_init__(self) -> None:
        self.uplink = Uplink(self.mac.unreported_slots)
        self._woken = Signal(self.env)

    def offer(self, order: TrainOrder, account: Account, cause: int) -> Upload:
        """Queue an update for upload; its `received` event succeeds when the gNB has its last bit."""
        now_slot = self.mac.access.first_slot(self.grid.ceil(self.env.now))
        earliest = max(now_slot, order.earliest_slot) if self.wait_for_tau else now_slot
        self.ledger.offer(account, order.payload_bits)
        event = self.trace.note(
            UploadOffered(order, self.grid.start_ns(earliest), self.grid.start_ns(order.deadline_slot)), cause
        )
        upload = Upload(order, account, self.env.event(), event, earliest)
        self.uplink.add(upload)
        self._woken.send()
        return upload

    def resume_upload(self, order: TrainOrder, account: Account, state: State) -> Upload:
        """Queue an upload that was in progress when the checkpoint was written."""
        upload = from_state(Upload, state, order=order, account=account, received=self.env.event())
        self.uplink.add(upload)
        return upload

    def withdraw(self, cv: int) -> None:
        """Discard the bits that a CV has not sent yet."""
        self.uplink.remove(cv)

    def change(self, link: Link, is_on: bool) -> None:
        """Use other values of keys from the next slot on."""
        self.mac.use(link)
        self.is_on = is_on
        self._woken.send()

    def ticks(self) -> Generator[Event, Any, None]:
        """Sleep while no CV can send; else decide at the start of a burst of slots, and collect the bits at its end."""
        while True:
            upcoming = self.grid.ceil(self.env.now)
            slot = self.uplink.next_slot(upcoming) if self.is_on else None
            if slot is None:
                yield self._woken.next()
                continue
            start = Instant(self.env, self.grid.start_ns(slot), Precedence.SLOT_START)
            yield start if slot == upcoming else start | self._woken.next()
            if start.processed and self.is_on and self.uplink.admit(slot):
                burst = yield from self.mac.transmit(slot, self.uplink, self._slots_until_next_event(slot))
                self._book(burst)
                yield Instant(self.env, self.grid.start_ns(slot + burst.slots), Precedence.SLOT_END)
                self._collect(burst)

    def _slots_until_next_event(self, slot: int) -> int:
        """Number of slots that start before the next event, and before another upload may begin: one burst.

        Only an event can change the input of the MAC. SLOT_START is the last at its instant, so the next event is
        already in the queue; one at this same instant is a consequence that has not been processed yet.
        """
        next_ns = self.env.peek()
        if next_ns <= self.env.now:
            return 1
        limits = self.uplink.starts_after(slot)
        if next_ns != float("inf"):
            limits.append(self.grid.ceil(int(next_ns)))
        return max(1, min(limits, default=slot + 1) - slot)

    def _book(self, burst: Burst) -> None:
        """Book what is certain: bits and energy of all slots but the last, and the energy of the last.

        A CV that leaves coverage within the last slot has used its energy, but delivers no bits in it.
        """
        log, slots = burst.log, burst.slots
        self.ledger.transmitted(
            bits_drained=float(log.bits[: slots - 1].sum()),
            bits_lost=float(log.bits_lost[:slots].sum()),
            transmit_j=self.grid.slot_s * float(log.power_w[:slots].sum()),
        )
        for first, _, upload in sorted(self._started(burst), key=lambda start: start[:2]):
            upload.cause = self.trace.note(UploadStarted(upload.order), upload.cause, self.grid.start_ns(first))
        self.trace.tell(burst)

    def _started(self, burst: Burst) -> Iterator[tuple[int, int, Upload]]:
        """First slot, CV and upload of those that were scheduled in this burst and never before."""
        used = self.uplink.queues["slots"]
        for row in np.flatnonzero((used > 0) & (used <= burst.slots)).tolist():
            served = np.flatnonzero(burst.log.prbs[: burst.slots, row])
            if len(served) == used[row]:
                yield burst.first_slot + int(served[0]), burst.uploads[row].cv, burst.uploads[row]

    def _collect(self, burst: Burst) -> None:
        """Book the bits of the last slot, except those of CVs whose upload was withdrawn during the slot."""
        for upload, bits in zip(burst.uploads, burst.log.bits[burst.slots - 1].tolist(), strict=True):
            if bits and upload in self.uplink:
                left = self.ledger.drain(upload.account, bits)
                self.trace.tell(Arrival(upload.cv, bits))
                if not left:
                    self.uplink.remove(upload.cv)
                    upload.received.succeed()


@dataclass
class Broadcaster(SavedAttributes):
    """Sends the model to the CVs of each plan; a broadcast begins when the one before has ended."""

    downlink: Downlink
    busy_until_ns: int = 0
    saved = ("busy_until_ns",)

    def worst_ns(self, snapshot: CoverageSnapshot) -> int:
        """Time until the CVs of a snapshot have the model, if all of them are to get it; plans count on this."""
        if not len(snapshot.cv):
            return 0
        waiting_ns = max(self.busy_until_ns - snapshot.time_ns, 0)
        return waiting_ns + self.downlink.duration_ns(self.downlink.rate_bps(snapshot.snr_per_watt))

    def send(self, observation: Observation, plan: Plan) -> Broadcast | None:
        """Broadcast the model to the CVs of a plan; None if nobody is to get it."""
        if not len(plan.cv) or plan.bypasses_network:
            return None
        snapshot = observation.snapshot
        rows = np.searchsorted(snapshot.cv, plan.cv)
        rate_bps = self.downlink.rate_bps(snapshot.snr_per_watt[rows])
        start_ns, duration_ns = max(snapshot.time_ns, self.busy_until_ns), self.downlink.duration_ns(rate_bps)
        self.busy_until_ns = start_ns + duration_ns
        bits, energy_j = self.downlink.bits, self.downlink.energy_j(duration_ns)
        return Broadcast(snapshot.time_ns, start_ns, self.busy_until_ns, len(rows), bits, rate_bps, energy_j)
