"""The gNB: takes updates from CVs, slot by slot, while there are bits to take."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from simpy import Event

from vefl_sim.clock import SlotGrid
from vefl_sim.ledger import Account, Ledger
from vefl_sim.protocol.environment import NanosecondEnvironment
from vefl_sim.protocol.instant import Instant, Order
from vefl_sim.protocol.mac import Grant, MacScheduler
from vefl_sim.protocol.messages import TrainOrder
from vefl_sim.protocol.uplink import Uplink, Upload
from vefl_sim.trace import Trace

_LAST_BIT = 1e-6  # less than this is rounding, not data


@dataclass
class GNodeB:
    """Uplink buffers and the MAC that empties them."""

    env: NanosecondEnvironment
    grid: SlotGrid
    mac: MacScheduler
    ledger: Ledger
    trace: Trace
    wait_for_tau: bool  # mac.start
    record_slot: Callable[[int, Grant], None]
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
                grants = self._grant(slot, uploads)
                yield Instant(self.env, self.grid.start_ns(slot + 1), Order.SLOT_END)
                self._collect(grants)

    def _next_offer(self) -> Event:
        if self._offered.triggered:
            self._offered = self.env.event()
        return self._offered

    def _grant(self, slot: int, uploads: list[Upload]) -> list[Grant]:
        grants = self.mac.grants(slot, uploads)
        for grant in grants:
            if not grant.upload.slots:
                self._note_start(grant.upload)
            grant.upload.slots += 1
            grant.upload.snr_sum += grant.snr
            # Booked when it is sent: a CV that leaves within the slot has spent the energy for nothing.
            self.ledger.transmit(grant.upload.account, grant.power_w * self.grid.slot_s)
            self.record_slot(slot, grant)
        return grants

    def _note_start(self, upload: Upload) -> None:
        upload.cause = self.trace.note(
            self.env.now, "upload_started", "gnb", cause=upload.cause, cv=upload.cv, round=upload.order.round
        )

    def _collect(self, grants: list[Grant]) -> None:
        for grant in grants:
            upload = grant.upload
            if upload not in self.uplink:
                continue  # withdrawn during the slot
            left = upload.account.bits_left
            bits = grant.rate_bps * self.grid.slot_s
            self.ledger.drain(upload.account, left if bits > left - _LAST_BIT else bits)
            if not upload.account.bits_left:
                self.uplink.remove(upload.cv)
                upload.received.succeed()
