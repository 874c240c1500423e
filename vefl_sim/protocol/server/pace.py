"""The pace of the server: when it plans and when it aggregates. In rounds, by a full buffer, or centrally."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from simpy import Event

from vefl_sim.core.clock import to_ns
from vefl_sim.learning.learner import LocalJob
from vefl_sim.protocol.inbox import Inbox, Refusal
from vefl_sim.protocol.instants import Instant, NanosecondEnvironment, Precedence, Signal
from vefl_sim.protocol.messages import Decision, TrainOrder, Update, Window
from vefl_sim.protocol.server.orders import checked_theorem2_sum, checked_weights, orders_of
from vefl_sim.protocol.trace import RoundEnded, RoundStarted
from vefl_sim.schemes.centralized import EVERYTHING
from vefl_sim.schemes.scheme import Received

if TYPE_CHECKING:
    from vefl_sim.protocol.server.edge import EdgeServer


@dataclass
class Pace(ABC):
    """When the server plans and when it aggregates."""

    env: NanosecondEnvironment
    scheme: Any  # Scheme or AsynchronousScheme
    delivered: list[Update] = field(default_factory=list)  # updates that are not aggregated yet
    orders: int = 0  # number of orders given so far, without rounds
    resting: dict[int, int] = field(default_factory=dict)  # CV -> time of its next order, without constraints

    precedence = Precedence.ROUND  # of the start of a round, and of its end, among simultaneous events
    overlap = 0  # number of rounds that have ended and whose orders may still be in progress
    has_versions = False  # whether updates may have started from different versions of the model

    @abstractmethod
    def order_and_wait(self, server: "EdgeServer", window: Window) -> Generator[Event, Any, None]:
        """Plan, give orders, and wait for the end of the round."""

    @abstractmethod
    def receive(self, server: "EdgeServer", window: Window, update: Update) -> None:
        """Deal with an update, delivered or lost, that was ordered in this window."""

    @abstractmethod
    def aggregate(self, server: "EdgeServer", window: Window) -> int:
        """End a round, and aggregate what is due then; returns the event after which the model is evaluated."""


@dataclass
class Rounds(Pace):
    """One plan per round for all CVs in coverage. Their orders end with the round, and are aggregated together."""

    def order_and_wait(self, server: "EdgeServer", window: Window) -> Generator[Event, Any, None]:
        """Plan at the start of the round; at its end, end the orders in progress."""
        decision = yield from server.decide(window)
        window.opened = server.trace.note(RoundStarted(window.round, window.in_coverage, decision, None))
        orders = [*orders_of(decision.observation, decision.plan, decision.model_ns)]
        server.send(window, decision, orders)
        self._all_ended = self.env.event()
        end = Instant(self.env, self.env.now + server.timetable.experiment.round_ns, self.precedence)
        early = server.timetable.experiment.server.early_close and orders and not decision.plan.bypasses_network
        yield (end | self._all_ended) if early else end
        for order in orders:
            server.revoke(order, "round_ended")  # if it has not ended
        if window.orders_left:
            yield self._all_ended  # until the revoked CVs have reported, at this same nanosecond

    def receive(self, server: "EdgeServer", window: Window, update: Update) -> None:
        """Keep a delivered update for the end of the round."""
        if update.delivered:
            self.delivered.append(update)
        if not window.orders_left:
            self._all_ended.succeed()

    def aggregate(self, server: "EdgeServer", window: Window) -> int:
        """Aggregate the updates of the round, in CV order, with the weights that the scheme returns."""
        [decision], weights = window.decisions, list[float]()
        updates = sorted(self.delivered, key=lambda update: update.outcome.order.cv)
        self.delivered = []
        ended = server.trace.note(RoundEnded(window.round, len(updates), None), window.opened)
        if updates:
            cvs = np.array([update.outcome.order.cv for update in updates], dtype=np.int64)
            returned = self.scheme.aggregate(decision.observation, decision.plan, cvs)
            weights = checked_weights(returned, len(updates))
        aggregated = server.step(window, updates, weights, ended)
        if self.scheme.theorem2_sum:
            returned = self.scheme.theorem2_sum(decision.observation, decision.plan)
            window.theorem2_sum = checked_theorem2_sum(returned)
        return aggregated


@dataclass
class Central(Rounds):
    """Centralized training: one pass over all samples per round, at the server; no CV gets an order."""

    def aggregate(self, server: "EdgeServer", window: Window) -> int:
        """Train the model itself."""
        ended = server.trace.note(RoundEnded(window.round, 0, None), window.opened)
        server.model.train(LocalJob(EVERYTHING, 1, window.round))
        self.delivered = []  # of orders that were handed in from outside
        window.steps += 1
        return server.step(window, (), (), ended)


@dataclass
class Buffer(Pace):
    """No rounds: CVs get an order when they ask, and a full buffer of updates is aggregated.

    Budgets and tables are per window of t_th. An order belongs to the window in which it was given, and expires t_th
    after that; so all orders of a window have ended when the next window ends.
    """

    precedence = Precedence.REQUEST
    overlap = 1
    has_versions = True

    def __post_init__(self) -> None:
        self._window_opened = Signal(self.env)

    def order_and_wait(self, server: "EdgeServer", window: Window) -> Generator[Event, Any, None]:
        """Answer the requests of each instant together until t_th is over; later ones belong to the next window."""
        started = RoundStarted(window.round, window.in_coverage, None, server.model.version)
        window.opened = server.trace.note(started)
        self._window_opened.send()
        end = Instant(self.env, window.start_ns + server.timetable.experiment.round_ns, self.precedence)
        yield Instant(self.env, self.env.now, self.precedence)  # when all CVs that waited have requested an order
        while not end.processed:
            yield from self._answer(server, window)
            yield server.inbox.requested.next() | end
            yield Instant(self.env, self.env.now, self.precedence)  # when everything else has happened

    def receive(self, server: "EdgeServer", window: Window, update: Update) -> None:
        """Add a delivered update to the buffer, and aggregate the buffer if it is full."""
        if update.delivered:
            self.delivered.append(update)
        if len(self.delivered) >= self.scheme.buffer:
            updates, self.delivered = self.delivered, []
            returned = self.scheme.weights(_received(updates, server.model.version))
            weights = checked_weights(returned, len(updates))
            server.step(server.windows[-1], updates, weights, updates[-1].outcome.event)

    def aggregate(self, server: "EdgeServer", window: Window) -> int:
        """Aggregate nothing: full buffers have been, and others wait."""
        return server.trace.note(RoundEnded(window.round, None, server.model.version), window.opened)

    def _answer(self, server: "EdgeServer", window: Window) -> Generator[Event, Any, None]:
        """Make one plan for all CVs that request an order; at the start of a window also if there are none."""
        requests = self._requests(server.inbox)
        if not requests and window.decisions:
            return  # the CVs that requested an order have left coverage, or rest
        cvs = sorted(requests)
        decision = yield from server.decide(
            window,
            cvs,
            others=len(server.coverage.in_coverage) - len(cvs),
            committed=window.committed(cvs),
            horizon_ns=server.timetable.experiment.duration_ns - self.env.now,
        )
        orders = [*self._orders(server, decision)]
        server.send(window, decision, orders)
        for order in orders:
            server.expire(order)
        for cv in sorted(requests):  # those without an order
            requests.pop(cv).succeed(self._refusal(server, window, cv, decision.plan.ineligible.get(cv)))

    def _requests(self, inbox: Inbox) -> dict[int, Event]:
        """The requests that are to be answered; those of CVs that rest get the end of their rest as an answer."""
        for cv in [cv for cv in inbox.requests if self.resting.get(cv, 0) > self.env.now]:
            inbox.requests.pop(cv).succeed(Refusal(Instant(self.env, self.resting[cv], self.precedence)))
        return inbox.requests

    def _refusal(self, server: "EdgeServer", window: Window, cv: int, limit: str | None) -> Refusal:
        """Let a CV ask again in the next window, or before, if it may then have more time or a faster CPU."""
        next_window = self._window_opened.next()
        spent = cv in window.cost and limit not in ("time", "cpu")  # its share of this window is used up
        if limit is None or spent:
            return Refusal(next_window)
        again_ns = self.env.now + to_ns(server.timetable.experiment.server.retry_s)
        return Refusal(next_window | Instant(self.env, again_ns, self.precedence))

    def _orders(self, server: "EdgeServer", decision: Decision) -> Iterator[TrainOrder]:
        """The orders of a decision, with their numbers, the current model version and the time they expire.

        Without constraints a CV rests until t_th after its order, or it would deliver more updates than with rounds.
        """
        experiment = server.timetable.experiment
        longest_ns = min(experiment.round_ns, experiment.duration_ns - self.env.now)
        for order in orders_of(decision.observation, decision.plan, decision.model_ns):
            self.orders += 1
            ends = {"expiry_ns": order.ordered_ns + longest_ns}
            if decision.plan.bypasses_network:
                ends = {"bypass_ns": min(order.train_ns, longest_ns)}
                self.resting[order.cv] = order.ordered_ns + experiment.round_ns
            yield replace(order, number=self.orders, version=server.model.version, **ends)


def _received(updates: list[Update], version: int) -> Received:
    """The buffered updates as arrays, for the scheme; `version` is that of the current model."""
    orders = [update.outcome.order for update in updates]
    rows = [[o.cv, o.iterations, o.samples, version - o.version] for o in orders]  # type: ignore[operator]  # not None
    return Received(*np.array(rows, np.int64).T)
