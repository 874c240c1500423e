"""The gNB: takes updates from CVs, slot by slot, while there are bits to take."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from simpy import Event

from vefl_sim.core.clock import SlotGrid
from vefl_sim.core.state import State
from vefl_sim.protocol.events import Instant, NanosecondEnvironment, Order
from vefl_sim.protocol.ledger import Account, Ledger
from vefl_sim.protocol.mac import Burst, MacScheduler
from vefl_sim.protocol.messages import TrainOrder
from vefl_sim.protocol.trace import Trace
from vefl_sim.protocol.uplink import Uplink, Upload


@dataclass
class GNodeB:
    """Uplink buffers and the MAC that empties them."""

    env: NanosecondEnvironment
    grid: SlotGrid
    mac: MacScheduler
    ledger: Ledger
    trace: Trace
    wait_for_tau: bool  # mac.start
    record_burst: Callable[[Burst], None]
    uplink: Uplink = field(default_factory=Uplink)

    def __post_init__(self) -> None:
        self._offered = self.env.event()

    def offer(self, order: TrainOrder, account: Account, cause: int) -> Upload:
        """Queue an update; its `received` event succeeds when the last bit is in."""
        now_slot = self.grid.ceil(self.env.now)
        earliest = max(now_slot, order.earliest_slot) if self.wait_for_tau else now_slot
        self.ledger.offer(account, order.payload_bits)
        event = self.trace.note(
            self.env.now, "upload_offered", f"cv {order.cv}", cause=cause, cv=order.cv, round=order.round,
            bits=order.payload_bits, earliest_ns=self.grid.start_ns(earliest),
            deadline_ns=self.grid.start_ns(order.deadline_slot),
        )  # fmt: skip
        upload = Upload(order, account, self.env.event(), event, earliest)
        self.uplink.add(upload)
        if not self._offered.triggered:
            self._offered.succeed()
        return upload

    def state(self) -> State:
        """That of the MAC; uploads under way belong to the orders of their CVs."""
        return self.mac.state()

    def restore(self, state: State) -> None:
        """Go on from there."""
        self.mac.restore(state)

    def take_back(self, order: TrainOrder, account: Account, state: State) -> Upload:
        """Queue an upload again that was under way when the run was put away."""
        upload = Upload(order, account, self.env.event(), **state)
        self.uplink.add(upload)
        return upload

    def withdraw(self, cv: int) -> None:
        """Forget what a CV had left to send."""
        self.uplink.remove(cv)

    def ticks(self) -> Generator[Event, Any, None]:
        """Sleep while nothing can be sent; else decide at the start of each slot and collect at its end."""
        while True:
            coming = self.grid.ceil(self.env.now)
            slot = self.uplink.next_slot(coming)
            if slot is None:
                yield self._next_offer()
                continue
            start = Instant(self.env, self.grid.start_ns(slot), Order.SLOT_START)
            yield start if slot == coming else start | self._next_offer()
            if start.processed and (uploads := self.uplink.eligible(slot)):
                burst = self.mac.transmit(slot, uploads, self._slots_until_news(slot))
                self._book(burst)
                yield Instant(self.env, self.grid.start_ns(slot + burst.slots), Order.SLOT_END)
                self._collect(burst)

    def _slots_until_news(self, slot: int) -> int:
        """Slots that start before the next event, or before another upload may begin: they can be run at once.

        Nothing but an event can change what the MAC knows. This runs last of all at its instant, so the next
        event is in the queue; one at this same instant would be a consequence still to come.
        """
        next_ns = self.env.peek()
        if next_ns <= self.env.now:
            return 1
        limits = [upload.earliest_slot for upload in self.uplink if upload.earliest_slot > slot]
        if next_ns != float("inf"):
            limits.append(self.grid.ceil(int(next_ns)))
        return max(1, min(limits, default=slot + 1) - slot)

    def _next_offer(self) -> Event:
        if self._offered.triggered:
            self._offered = self.env.event()
        return self._offered

    def _book(self, burst: Burst) -> None:
        """Book what is certain: all slots but the last, and the energy of that one.

        A CV that leaves within the last slot has spent its energy for nothing.
        """
        started = []
        for row, upload in enumerate(burst.uploads):
            queues = burst.queues
            self.ledger.transmitted(
                upload.account,
                float(queues.bits_drained[row]),
                float(queues.bits_left[row]),
                float(queues.transmit_j[row]),
            )
            if not upload.slots and queues.slots[row]:
                first = burst.first_slot + int(np.flatnonzero(burst.log.prbs[:, row])[0])
                started.append((first, upload.cv, upload))
            upload.slots, upload.snr_sum = int(queues.slots[row]), float(queues.snr_sum[row])
        for first, _, upload in sorted(started, key=lambda item: item[:2]):
            self._note_start(upload, self.grid.start_ns(first))
        self.record_burst(burst)

    def _note_start(self, upload: Upload, time_ns: int) -> None:
        upload.cause = self.trace.note(
            time_ns, "upload_started", "gnb", cause=upload.cause, cv=upload.cv, round=upload.order.round
        )

    def _collect(self, burst: Burst) -> None:
        """The bits of the last slot have arrived, unless their CV has gone meanwhile."""
        for upload, bits in zip(burst.uploads, burst.last_bits.tolist(), strict=True):
            if upload in self.uplink:
                self.ledger.drain(upload.account, bits)
                if not upload.account.bits_left:
                    self.uplink.remove(upload.cv)
                    upload.received.succeed()
