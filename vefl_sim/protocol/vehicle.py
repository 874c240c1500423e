"""A connected vehicle: accepts an order, trains the model, and sends its update to the gNB."""

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from simpy import Event, Interrupt, Process

from vefl_sim.core.state import NOT_SAVED, State, from_state
from vefl_sim.learning.learner import NO_START, Start
from vefl_sim.protocol.events import Instant, NanosecondEnvironment, Precedence
from vefl_sim.protocol.gnb import GNodeB
from vefl_sim.protocol.ledger import Account, Ledger
from vefl_sim.protocol.messages import Loss, OrderOutcome, TrainOrder, Update
from vefl_sim.protocol.trace import DEPARTURES, Departure, Trace
from vefl_sim.protocol.uplink import Upload
from vefl_sim.schemes.sla import Agreement

if TYPE_CHECKING:
    from vefl_sim.protocol.server.asynchronous import AsynchronousServer


@dataclass
class OrderInProgress:
    """An order that a CV is working on."""

    order: TrainOrder
    account: Account = field(metadata=NOT_SAVED)  # saved with the ledger
    cause: int  # number of the last trace event of this order
    start: Start = field(default=NO_START, metadata=NOT_SAVED)  # what the CV trains from; empty with rounds
    upload: Upload | None = None  # None until the training has ended
    has_model: bool = False  # whether a broadcast of the model was received

    @property
    def training_start_ns(self) -> int:
        """When the CV has the model."""
        return self.order.ordered_ns + self.order.model_ns


class Grant(NamedTuple):
    """An order that the server gives to a CV on request."""

    order: TrainOrder
    event: int  # number of its `training_ordered` event
    start: Start


@dataclass
class ConnectedVehicle:
    """A CV in coverage. It works on at most one order at a time."""

    env: NanosecondEnvironment
    number: int
    agreement: Agreement
    gnb: GNodeB
    ledger: Ledger
    trace: Trace
    distance_m: Callable[[], float]  # current distance from the gNB
    has_left_coverage: bool = False
    task: OrderInProgress | None = None  # None if the CV is idle; with rounds it stays until the next order
    work: Process | None = None  # works on the last order
    participation: Process | None = None  # without rounds: pulls orders and pushes updates

    def accept(self, order: TrainOrder, cause: int, start: Start = NO_START) -> Process:
        """Start working on an order; the process returns its OrderOutcome."""
        price, fee = self.agreement.price_per_joule, self.agreement.base_fee
        return self._begin(OrderInProgress(order, self.ledger.open(self.number, order.round, price, fee), cause, start))

    def resume(self, state: State, start: Start) -> Process:
        """Resume an order that was in progress when the checkpoint was written."""
        order = from_state(TrainOrder, state["order"])
        task = OrderInProgress(order, self.ledger.account(self.number, order.round), state["cause"], start)
        task.has_model = state["has_model"]
        if state["upload"] is not None:
            task.upload = self.gnb.resume_upload(order, task.account, state["upload"])
        return self._begin(task)

    def start(self, server: "AsynchronousServer") -> None:
        """Start to take part in a run without rounds."""
        self.participation = self.env.process(self.participate(server))

    def participate(self, server: "AsynchronousServer") -> Generator[Event, Any, None]:
        """Without rounds: pull an order, train and upload before it expires, push the update; until the CV leaves."""
        with suppress(Interrupt):  # the CV leaves while it waits for an order
            while not self.has_left_coverage:
                if self.task is None:
                    self.accept(*(yield from server.pull(self)))
                assert self.task is not None
                outcome = yield from self._before_expiry(self.task.order)
                yield server.push(Update(outcome, self.task.start))
                self.task = None

    def _before_expiry(self, order: TrainOrder) -> Generator[Event, Any, OrderOutcome]:
        """Wait until the work on an order ends; at its expiry, end it."""
        assert self.work is not None
        if order.expiry_ns is not None:
            yield self.work | Instant(self.env, order.expiry_ns, Precedence.ROUND)
            if self.work.is_alive:
                self.work.interrupt("expired")
        outcome: OrderOutcome = yield self.work
        return outcome

    def leave(self, how: Departure) -> None:
        """Leave coverage: the order in progress is lost, and no other is requested."""
        self.has_left_coverage = True
        for process in (self.work, self.participation if self.task is None else None):
            if process is not None and process.is_alive:
                process.interrupt(how)

    def _begin(self, task: OrderInProgress) -> Process:
        """Start the process of an order."""
        method = self.train_and_upload if task.order.bypass_ns is None else self.deliver
        self.task, self.work = task, self.env.process(method(task))
        return self.work

    def deliver(self, task: OrderInProgress) -> Generator[Event, Any, OrderOutcome]:
        """Without constraints: deliver the update in time, even if the CV leaves; only the training uses energy."""
        order, account = task.order, task.account
        with suppress(Interrupt):
            yield Instant(self.env, order.ordered_ns + (order.bypass_ns or 0), Precedence.ROUND)
        self.ledger.compute(account, order.compute_j)
        self.ledger.offer(account, order.payload_bits)
        self.ledger.drain(account, order.payload_bits)
        return self._conclude(task, None)

    def train_and_upload(self, task: OrderInProgress) -> Generator[Event, Any, OrderOutcome]:
        """Train for t_cmp, offer the update to the gNB and wait until it is received; an interrupt loses the update."""
        order, account, lost = task.order, task.account, None
        try:
            if task.upload is None:
                yield from self._receive_model(task)
                yield Instant(self.env, task.training_start_ns + order.train_ns, Precedence.TRAINING)
                self.ledger.compute(account, order.compute_j)
                task.cause = self._note("training_finished", order, task.cause, energy_j=order.compute_j)
                task.upload = self.gnb.offer(order, account, task.cause)
            yield task.upload.received
        except Interrupt as interrupt:
            lost = _loss(interrupt.cause, task.upload)
            self.gnb.withdraw(self.number)
            if task.upload is None:  # the CPU has worked for a part of t_cmp
                trained_ns = max(self.env.now - task.training_start_ns, 0)
                self.ledger.compute(account, order.compute_j * trained_ns / order.train_ns)
        return self._conclude(task, lost)

    def _receive_model(self, task: OrderInProgress) -> Generator[Event, Any, None]:
        """Wait for the end of the broadcast; without one, the CV has the model with its order."""
        if task.order.model_ns and not task.has_model:
            yield Instant(self.env, task.training_start_ns, Precedence.TRAINING)
            task.has_model, task.cause = True, self._note("model_received", task.order, task.cause)

    def _conclude(self, task: OrderInProgress, lost: Loss | None) -> OrderOutcome:
        """Settle the account, note how the order ended, and return its outcome."""
        order, account, upload = task.order, task.account, task.upload
        self.ledger.settle(account)
        event = self._note(
            "upload_received" if lost is None else "update_lost",
            order,
            upload.cause if upload else task.cause,
            reason=lost,
            slots=upload.slots if upload else 0,
            count=upload.lost_slots if upload and upload.lost_slots else None,
            mean_snr_db=upload.mean_snr_db if upload else None,
            bits=account.bits_drained,
            bits_left=account.bits_left if account.bits_offered else float(order.payload_bits),
            energy_j=account.energy_j,
            cost=account.paid,
        )
        slots = (upload.slots, upload.lost_slots, upload.lost_j) if upload else (0, 0, 0.0)
        return OrderOutcome(order, account, lost, slots[0], self.env.now, event, *slots[1:])

    def _note(self, kind: str, order: TrainOrder, cause: int, **columns: Any) -> int:
        return self.trace.note(
            self.env.now, kind, f"cv {self.number}", cause=cause, cv=self.number, round=order.round,
            distance_m=self.distance_m(), **columns,
        )  # fmt: skip


def _loss(cause: Any, upload: Upload | None) -> Loss:
    """Reason of a loss, from the cause of the interrupt; `upload` is None while the CV is training."""
    if cause in DEPARTURES:
        return cast(Departure, cause)
    if upload is None:
        return "training_unfinished"
    return "expired" if cause == "expired" else "round_ended"
