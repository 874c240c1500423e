"""The asynchronous server: CVs pull orders and push updates on their own; a full buffer of updates is aggregated.

There are no rounds. Budgets and tables are per window of t_th. An order belongs to the window in which it was given,
and expires t_th after that; so all orders of a window have ended when the next window ends.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from simpy import Event, Store

from vefl_sim.core.state import State, from_state, state_of
from vefl_sim.learning.learner import Local, Start
from vefl_sim.protocol.events import Instant, Precedence, Signal
from vefl_sim.protocol.messages import Applied, Decision, OrderOutcome, TrainOrder, Update
from vefl_sim.protocol.server.edge import EdgeServer
from vefl_sim.protocol.server.orders import checked_plan, checked_weights, orders_of
from vefl_sim.protocol.server.window import Window
from vefl_sim.protocol.vehicle import ConnectedVehicle, Grant, OrderInProgress
from vefl_sim.schemes.scheme import Received


class Refusal(Enum):
    """Why a CV gets no order now."""

    FOR_NOW = "it may have more time or a faster CPU later"
    IN_THIS_WINDOW = "its share of the budget is used up, or the scheme prefers others"


class _Request(NamedTuple):
    """A CV that waits for an order. The value of the answer is a Grant or a Refusal."""

    vehicle: ConnectedVehicle
    answer: Event


@dataclass
class AsynchronousServer(EdgeServer):
    """Answers the requests of CVs, and aggregates the buffered updates (a server step) when the buffer is full."""

    retry_ns: int = field(kw_only=True)  # time after which a CV repeats a request that was refused for lack of time
    orders: int = 0  # number of orders given so far
    windows: list[Window] = field(default_factory=list)  # not reported yet; the last one is open
    buffer: list[Update] = field(default_factory=list)  # delivered updates that are not aggregated yet
    resting: dict[int, int] = field(default_factory=dict)  # without constraints: CV -> earliest next request

    def __post_init__(self) -> None:
        self._inbox = Store(self.env)  # updates that CVs have pushed
        self._requests: list[_Request] = []
        self._requested, self._window_opened = Signal(self.env), Signal(self.env)

    def rounds(self) -> Generator[Event, Any, None]:
        """Open one window after the other until the timetable ends."""
        yield Instant(self.env, self.env.now, Precedence.REQUEST)
        self.model.start()
        self.env.process(self.collect())
        while self.timetable.has(self.round, self.env.now):
            if not self.reporting.checkpoint():
                return
            window = self._open_window()
            yield from self._answer_requests(window)
            self._close_window(window)
            self.round += 1

    def collect(self) -> Generator[Event, Any, None]:
        """Take the updates that CVs push, and step whenever the buffer is full."""
        while True:
            update = yield self._inbox.get()
            self._book(update.outcome)
            if update.delivered:
                self.buffer.append(update)
            if len(self.buffer) >= self.scheme.buffer:
                self._step()

    def pull(self, vehicle: ConnectedVehicle) -> Generator[Event, Any, Grant]:
        """Let a CV wait for its next order; a refused CV asks again after retry_ns or in the next window."""
        while True:
            if (rested_ns := self.resting.get(vehicle.number, 0)) > self.env.now:
                yield Instant(self.env, rested_ns, Precedence.REQUEST)
            request = _Request(vehicle, self.env.event())
            self._requests.append(request)
            self._requested.send()
            answer = yield request.answer
            if isinstance(answer, Grant):
                return answer
            until = self._window_opened.next()
            if answer is Refusal.FOR_NOW:
                until |= Instant(self.env, self.env.now + self.retry_ns, Precedence.REQUEST)
            yield until

    def push(self, update: Update) -> Event:
        """Receive an update from a CV, delivered or lost."""
        return self._inbox.put(update)

    def on_entered(self, vehicle: ConnectedVehicle) -> None:
        """A CV that enters coverage starts to pull orders and push updates."""
        vehicle.start(self)

    def state(self) -> State:
        """Windows, buffer and orders in progress; requests are not saved: idle CVs repeat them in the next window."""
        tasks = self._tasks()
        starts = {task.order.number: task.start for task in tasks}
        starts |= {update.outcome.order.number: update.start for update in self.buffer}
        orders = [task.order for task in tasks] + [update.outcome.order for update in self.buffer]
        models = {order.version: starts[order.number].model for order in orders}
        models.pop(self.model.version, None)  # saved as the current model
        return super().state() | {
            "orders": self.orders,
            "models": {version: self.model.learner.arrays_of(model) for version, model in models.items()},
            "locals": {number: state_of(start.local) for number, start in starts.items() if start.local != Local()},
            "windows": state_of(self.windows),
            "buffer": state_of(self.buffer),
            "resting": {cv: until_ns for cv, until_ns in self.resting.items() if until_ns > self.env.now},
            "tasks": state_of(tasks),
        }

    def restore(self, state: State) -> None:
        """Restore the server from a checkpoint; orders resume by number, so simultaneous events keep their order."""
        super().restore(state)
        models = {version: self.model.learner.model_of(arrays) for version, arrays in state["models"].items()}
        models[self.model.version] = self.model.parameters
        self.orders, self.resting = state["orders"], state["resting"]
        self.windows = from_state(list[Window], state["windows"], constants=self.observe.constants)
        outcomes = [from_state(OrderOutcome, update["outcome"]) for update in state["buffer"]]
        local = {number: Local(**saved) for number, saved in state["locals"].items()}
        self.buffer = [
            Update(outcome, Start(models[outcome.order.version], local.get(outcome.order.number, Local())))
            for outcome in outcomes
        ]
        vehicles = self.observe.in_coverage
        for task in state["tasks"]:
            order, vehicle = task["order"], vehicles[task["order"]["cv"]]
            vehicle.resume(task, Start(models[order["version"]], local.get(order["number"], Local())))
            vehicle.start(self)
        for vehicle in vehicles.values():
            if vehicle.task is None:
                vehicle.start(self)

    def _tasks(self) -> list[OrderInProgress]:
        """The orders in progress, by number."""
        tasks = (vehicle.task for vehicle in self.observe.in_coverage.values())
        return sorted((task for task in tasks if task is not None), key=lambda task: task.order.number)

    def _open_window(self) -> Window:
        """Open the next window, with a new budget; CVs that wait for it request an order."""
        k, count = self.round, len(self.observe.in_coverage)
        self.reporting.stopwatch.round = k
        opened = self._note("round_started", k, count=count, version=self.model.version)
        window = Window(k, self.env.now, count, opened)
        self.windows.append(window)
        self.observe.begin_round()
        self._window_opened.send()
        return window

    def _answer_requests(self, window: Window) -> Generator[Event, Any, None]:
        """Answer the requests of each instant together until t_th is over; later ones belong to the next window."""
        end = Instant(self.env, window.start_ns + self.timetable.round_ns, Precedence.REQUEST)
        yield Instant(self.env, self.env.now, Precedence.REQUEST)  # when all CVs that waited have requested an order
        while not end.processed:
            self._answer(window)
            yield self._requested.next() | end
            yield Instant(self.env, self.env.now, Precedence.REQUEST)  # when everything else has happened

    def _close_window(self, window: Window) -> None:
        """Evaluate the model, and report the windows whose orders have all ended."""
        window.end_ns = self.env.now
        ended = self._note("round_ended", self.round, cause=window.opened, version=self.model.version)
        window.evaluation = self._evaluate(self.round, ended)
        last = not self.timetable.has(self.round + 1, self.env.now)
        complete = self.windows if last else self.windows[:-1]
        self.windows = self.windows[len(complete) :]
        for finished in complete:
            self.reporting.report(finished.report())

    def _answer(self, window: Window) -> None:
        """Make one plan for all CVs that request an order; at the start of a window also if there are none."""
        vehicles = self.observe.in_coverage
        requests = {r.vehicle.number: r for r in self._requests if vehicles.get(r.vehicle.number) is r.vehicle}
        self._requests.clear()
        if not requests and window.decisions:
            return  # the CVs that requested an order have left coverage
        decision = self._decide(window, sorted(requests))
        window.decisions.append(decision)
        for order, event in self._announce(decision, self._orders(decision), window.opened):
            window.commit(order, vehicles[order.cv].agreement)
            if order.bypass_ns is not None:
                self.resting[order.cv] = order.ordered_ns + self.timetable.round_ns
            requests.pop(order.cv).answer.succeed(Grant(order, event, self.start_of(order)))
        for cv, request in requests.items():
            limit = decision.plan.ineligible.get(cv)
            spent = cv in window.cost and limit not in ("time", "cpu")  # its share of this window is used up
            request.answer.succeed(Refusal.IN_THIS_WINDOW if limit is None or spent else Refusal.FOR_NOW)

    def _decide(self, window: Window, cvs: list[int]) -> Decision:
        """Observe the CVs that request an order, and let the scheme plan."""
        with self.reporting.stopwatch("plan"):
            observation = self.observe(
                self.round,
                cvs,
                others=len(self.observe.in_coverage) - len(cvs),
                committed=window.committed(cvs),
                horizon_ns=self.timetable.duration_ns - self.env.now,
            )
            return self._decision(observation, checked_plan(observation, self.scheme.plan(observation)))

    def _orders(self, decision: Decision) -> Iterator[TrainOrder]:
        """The orders of a decision, with their numbers, the current model version and the time they expire.

        Without constraints a CV rests until t_th after its order, or it would deliver more updates than with rounds.
        """
        longest_ns = min(self.timetable.round_ns, self.timetable.duration_ns - self.env.now)
        for order in orders_of(decision.observation, decision.plan, decision.model_ns):
            self.orders += 1
            ends = (
                {"bypass_ns": min(order.train_ns, longest_ns)}
                if decision.plan.bypasses_network
                else {"expiry_ns": order.ordered_ns + longest_ns}
            )
            yield replace(order, number=self.orders, version=self.model.version, **ends)

    def _book(self, outcome: OrderOutcome) -> None:
        """Add the outcome of an order to its window and to the history of its CV."""
        order = outcome.order
        [window] = (window for window in self.windows if window.round == order.round)
        window.add(outcome)
        self.observe.history.add([order.cv], [order.cv] if outcome.lost is None else [])

    def _step(self) -> None:
        """Aggregate the buffered updates, each trained from its own model version, to the next version."""
        updates, self.buffer = self.buffer, []
        window, received = self.windows[-1], _received(updates, self.model.version)
        weights = checked_weights(self.scheme.weights(received), len(updates))
        with self.reporting.stopwatch("train"):
            weights = self.model.step(updates, weights)
        self._tidy_memory()
        applied = [Applied(w, stale) for w, stale in zip(weights, received.staleness.tolist(), strict=True)]
        for outcome, use in zip((update.outcome for update in updates), applied, strict=True):
            self._note(
                "update_aggregated", outcome.order.round, cv=outcome.order.cv, cause=outcome.event, weight=use.weight,
                version=outcome.order.version, staleness=use.staleness,
            )  # fmt: skip
        self._note(
            "model_aggregated", self.round, cause=updates[-1].outcome.event, count=len(updates), weight=sum(weights),
            version=self.model.version,
        )  # fmt: skip
        window.applied += applied
        window.steps += 1


def _received(updates: list[Update], version: int) -> Received:
    """The buffered updates as arrays, for the scheme; `version` is that of the current model."""
    orders = [update.outcome.order for update in updates]
    rows = [[o.cv, o.iterations, o.samples, version - o.version] for o in orders]  # type: ignore[operator]  # not None
    return Received(*np.array(rows, np.int64).T)
