"""A connected vehicle: it gets an order, trains, uploads, turns its update in; one life, with rounds and without."""

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

from simpy import Event, Interrupt

from vefl_sim.core.state import NOT_SAVED, State, from_state
from vefl_sim.learning.learner import Start
from vefl_sim.protocol.gnb import GNodeB
from vefl_sim.protocol.inbox import Assignment, Inbox
from vefl_sim.protocol.instants import Instant, NanosecondEnvironment, Precedence
from vefl_sim.protocol.ledger import Account, Ledger
from vefl_sim.protocol.messages import Loss, OrderOutcome, TrainOrder, Update
from vefl_sim.protocol.trace import (
    DEPARTURES,
    Departure,
    ModelReceived,
    Trace,
    TrainingFinished,
    UpdateLost,
    UploadReceived,
)
from vefl_sim.protocol.uplink import Upload
from vefl_sim.schemes.sla import Agreement


@dataclass
class OrderInProgress:
    """An order that a CV is working on."""

    order: TrainOrder
    account: Account = field(metadata=NOT_SAVED)  # saved with the ledger
    cause: int  # number of the last trace event of this order
    start: Start = field(metadata=NOT_SAVED)  # what the CV trains from
    upload: Upload | None = None  # None until the training has ended
    has_model: bool = False  # whether a broadcast of the model was received

    @property
    def training_start_ns(self) -> int:
        """When the CV has the model."""
        return self.order.ordered_ns + self.order.model_ns


@dataclass
class ConnectedVehicle:
    """A CV that is in coverage, or was there and may come back. It works on at most one order at a time."""

    env: NanosecondEnvironment
    number: int
    agreement: Agreement
    inbox: Inbox  # of the server
    gnb: GNodeB
    ledger: Ledger
    trace: Trace
    distance_m: Callable[[], float]  # current distance from the gNB
    work: OrderInProgress | None = None  # None if the CV is idle

    def __post_init__(self) -> None:
        self._entered = self.env.event()  # coverage; a new one when the CV leaves

    def start(self) -> None:
        """Begin to live, in coverage."""
        self.enter()
        self._process = self.env.process(self.life())

    def life(self) -> Generator[Event, Any, None]:
        """Get an order, train, upload, turn the update in; and again. After its trip a CV waits, and is forgotten."""
        while True:
            if self.work is None:  # else it was resumed from a checkpoint
                self.work = yield from self._next_order()
            lost = yield from self._train_and_upload(self.work)
            outcome = self._settle(self.work, lost)
            self.inbox.turn_in(Update(outcome, self.work.start))
            self.work = None

    def _next_order(self) -> Generator[Event, Any, OrderInProgress]:
        """Ask the server for an order until it gives one; while the CV is out of coverage, wait."""
        while True:
            yield self._entered
            try:
                answer = yield self.inbox.request(self.number)
                if isinstance(answer, Assignment):
                    price, fee = self.agreement.price_per_joule, self.agreement.base_fee
                    account = self.ledger.open(self.number, answer.order.round, price, fee)
                    return OrderInProgress(answer.order, account, answer.event, answer.start)
                yield answer.until  # a refusal, only without rounds: with rounds, requests wait for the next plan
            except Interrupt:  # it has left coverage
                self.inbox.withdraw(self.number)

    def _train_and_upload(self, work: OrderInProgress) -> Generator[Event, Any, Loss | None]:
        """Train for t_cmp, offer the update to the gNB and wait until it is received; an interrupt loses the update.

        An order that bypasses the network is delivered in any case.
        """
        order, account = work.order, work.account
        if order.bypasses_network:
            yield from self._deliver(order, account)
            return None
        try:
            if work.upload is None:  # else it was resumed from a checkpoint
                yield from self._receive_model(work)
                yield Instant(self.env, work.training_start_ns + order.train_ns, Precedence.TRAINING)
                self.ledger.compute(account, order.compute_j)
                work.cause = self.trace.note(TrainingFinished(order, self.distance_m()), work.cause)
                work.upload = self.gnb.offer(order, account, work.cause)
            yield work.upload.received
        except Interrupt as interrupt:
            self.gnb.withdraw(self.number)  # bits of the current slot do not count
            if work.upload is None:  # the CPU has worked for a part of t_cmp
                trained_ns = max(self.env.now - work.training_start_ns, 0)
                self.ledger.compute(account, order.compute_j * trained_ns / order.train_ns)
            return _loss(interrupt.cause, work.upload)
        return None

    def _receive_model(self, work: OrderInProgress) -> Generator[Event, Any, None]:
        """Wait for the end of the broadcast; without one, the CV has the model with its order."""
        if work.order.model_ns and not work.has_model:
            yield Instant(self.env, work.training_start_ns, Precedence.TRAINING)
            work.has_model, work.cause = True, self.trace.note(ModelReceived(work.order, self.distance_m()), work.cause)

    def _deliver(self, order: TrainOrder, account: Account) -> Generator[Event, Any, None]:
        """Without constraints: deliver the update in time, even if the CV leaves; only the training uses energy."""
        with suppress(Interrupt):
            yield Instant(self.env, order.ordered_ns + (order.bypass_ns or 0), Precedence.ROUND)
        self.ledger.compute(account, order.compute_j)
        self.ledger.offer(account, order.payload_bits)
        self.ledger.drain(account, order.payload_bits)

    def _settle(self, work: OrderInProgress, lost: Loss | None) -> OrderOutcome:
        """Settle the account of an order that has ended, and note its outcome."""
        upload = work.upload
        self.ledger.settle(work.account)
        slots = (upload.slots, upload.lost_slots, upload.lost_j) if upload else (0, 0, 0.0)
        outcome = OrderOutcome(work.order, work.account, lost, slots[0], self.env.now, 0, *slots[1:])
        ended = UploadReceived if lost is None else UpdateLost
        cause = upload.cause if upload else work.cause
        return replace(outcome, event=self.trace.note(ended(outcome, upload, self.distance_m()), cause))

    def enter(self) -> None:
        """Enter coverage, for the first time or again."""
        self._entered.succeed()

    def leave(self, how: Departure) -> None:
        """Leave coverage: work in progress is interrupted, and no order is requested until the CV comes back."""
        self._entered = self.env.event()
        self._process.interrupt(how)

    def revoke(self, order: TrainOrder, reason: Loss) -> None:
        """End an order whose time is over, unless it has ended already."""
        if self.work is not None and self.work.order is order:
            self._process.interrupt(reason)

    def resume(self, state: State, start: Start) -> TrainOrder:
        """Take up an order that was in progress when the checkpoint was written; to be called before `start`."""
        order = from_state(TrainOrder, state["order"])
        self.work = OrderInProgress(order, self.ledger.account(self.number, order.round), state["cause"], start)
        self.work.has_model = state["has_model"]
        if state["upload"] is not None:
            self.work.upload = self.gnb.resume_upload(order, self.work.account, state["upload"])
        return order


def _loss(cause: Any, upload: Upload | None) -> Loss:
    """Reason of a loss, from the cause of the interrupt; `upload` is None while the CV is training."""
    if cause in DEPARTURES:
        return cast(Departure, cause)
    if upload is None:
        return "training_unfinished"
    return cast(Loss, cause)
