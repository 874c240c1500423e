"""A connected vehicle: takes orders, trains, sends its update."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from simpy import Event, Interrupt, Process

from vefl_sim.ledger import Account, Ledger
from vefl_sim.protocol.environment import NanosecondEnvironment
from vefl_sim.protocol.gnb import GNodeB
from vefl_sim.protocol.instant import Instant, Order
from vefl_sim.protocol.messages import Loss, Outcome, TrainOrder
from vefl_sim.protocol.uplink import Upload
from vefl_sim.sla import Agreement
from vefl_sim.trace import Trace


@dataclass
class ConnectedVehicle:
    """A CV in coverage. It works on at most one order at a time."""

    env: NanosecondEnvironment
    number: int
    agreement: Agreement
    gnb: GNodeB
    ledger: Ledger
    trace: Trace
    distance_m: Callable[[], float]
    work: Process | None = None

    def accept(self, order: TrainOrder, cause: int) -> Process:
        """Start working on an order; the process ends with its Outcome."""
        if order.assured:
            return self.env.process(self.deliver(order, cause))  # nobody can interrupt this
        self.work = self.env.process(self.participate(order, cause))
        return self.work

    def deliver(self, order: TrainOrder, cause: int) -> Generator[Event, Any, Outcome]:
        """Without constraints: the update is there at once, for the energy of its training."""
        yield Instant(self.env, self.env.now, Order.ROUND)
        account = self.ledger.open(self.number, order.round, self.agreement.price_per_joule, self.agreement.base_fee)
        self.ledger.compute(account, order.compute_j)
        self.ledger.offer(account, order.payload_bits)
        self.ledger.drain(account, order.payload_bits)
        return self._conclude(order, account, None, None, cause)

    def leave(self) -> None:
        """Coverage ends: whatever is under way is lost."""
        self._interrupt("coverage_left")

    def end_round(self) -> None:
        """The server has stopped waiting."""
        self._interrupt("round_ended")

    def participate(self, order: TrainOrder, cause: int) -> Generator[Event, Any, Outcome]:
        """Train for t_cmp, offer the update, wait until it is received; or be interrupted."""
        started_ns = self.env.now
        account = self.ledger.open(self.number, order.round, self.agreement.price_per_joule, self.agreement.base_fee)
        upload, lost = None, None
        try:
            yield Instant(self.env, started_ns + order.train_ns, Order.TRAINING)
            self.ledger.compute(account, order.compute_j)
            cause = self._note("training_finished", order, cause, energy_j=order.compute_j)
            upload = self.gnb.offer(order, account, cause)
            yield upload.received
        except Interrupt as interrupt:
            lost = self._loss(interrupt.cause, upload)
            self.gnb.withdraw(self.number)
            if upload is None:  # the CPU has worked for a part of the time
                self.ledger.compute(account, order.compute_j * (self.env.now - started_ns) / order.train_ns)
        return self._conclude(order, account, upload, lost, cause)

    def _conclude(
        self, order: TrainOrder, account: Account, upload: Upload | None, lost: Loss | None, cause: int
    ) -> Outcome:
        """Settle the account and note how it ended."""
        self.ledger.settle(account)
        event = self._note(
            "upload_received" if lost is None else "update_lost",
            order,
            upload.cause if upload else cause,
            reason=lost,
            slots=upload.slots if upload else 0,
            mean_snr_db=upload.mean_snr_db if upload else None,
            bits=account.bits_drained,
            bits_left=account.bits_left if account.bits_offered else float(order.payload_bits),
            energy_j=account.energy_j,
            cost=account.paid,
        )
        return Outcome(order, account, lost, upload.slots if upload else 0, self.env.now, event)

    def _interrupt(self, cause: str) -> None:
        if self.work is not None and self.work.is_alive:
            self.work.interrupt(cause)

    def _loss(self, cause: Any, upload: Upload | None) -> Loss:
        if cause == "coverage_left":
            return "coverage_left"
        return "training_unfinished" if upload is None else "round_ended"

    def _note(self, kind: str, order: TrainOrder, cause: int, **columns: Any) -> int:
        return self.trace.note(
            self.env.now, kind, f"cv {self.number}", cause=cause, cv=self.number, round=order.round,
            distance_m=self.distance_m(), **columns,
        )  # fmt: skip
