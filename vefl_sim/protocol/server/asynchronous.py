"""No rounds: every CV asks for an order as soon as it can, and the server steps whenever enough updates are in.

Money, energy and tables go by windows of t_th. An order belongs to the window in which it was asked for, and has t_th
from then on; so a window is complete when the next one ends.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from simpy import Event, Process

from vefl_sim.core.state import State
from vefl_sim.learning.learner import LocalJob, Model
from vefl_sim.protocol.events import Instant, Order
from vefl_sim.protocol.messages import Applied, Decision, OrderOutcome, TrainOrder
from vefl_sim.protocol.server.edge import EdgeServer
from vefl_sim.protocol.server.orders import checked, checked_weights, orders_of
from vefl_sim.protocol.server.window import Window, outcome_of, outcome_state
from vefl_sim.protocol.vehicle import ConnectedVehicle
from vefl_sim.schemes.observation import Observation, RoundConstants
from vefl_sim.schemes.scheme import Plan, Received


@dataclass
class AsynchronousServer(EdgeServer):
    """Answers CVs, and steps when its buffer is full."""

    constants: RoundConstants = field(kw_only=True)
    retry_ns: int = field(kw_only=True)  # after which a CV asks again that had no time to train
    version: int = 0  # of the model: steps so far
    orders: int = 0  # given so far
    models: dict[int, Model] = field(default_factory=dict)  # the newest, and those that somebody has started from
    windows: list[Window] = field(default_factory=list)  # whose orders have not all ended
    buffer: list[OrderOutcome] = field(default_factory=list)  # delivered, not yet part of the model
    asking: dict[int, int] = field(default_factory=dict)  # CV -> when it asks
    under_way: dict[int, TrainOrder] = field(default_factory=dict)  # by number
    resting: dict[int, int] = field(default_factory=dict)  # CV -> until when it does not ask: without constraints

    def rounds(self) -> Generator[Event, Any, None]:
        """One window after the other; what happens in them is up to the CVs."""
        yield Instant(self.env, self.env.now, Order.PULL)
        if not self.models:
            self.model = self.models[0] = self.learner.initial_model()
        while self.timetable.has(self.round, self.env.now):
            if not self.checkpoint():
                return
            self._open()
            yield Instant(self.env, self.env.now + self.timetable.round_ns, Order.PULL)
            self._close()
            self.round += 1

    def state(self) -> State:
        """Windows, buffer and orders under way. Who is idle asks anyway when the next window opens."""
        tasks = [vehicle.task for vehicle in self.in_coverage.values() if vehicle.task is not None]
        older = {version: model for version, model in self.models.items() if version != self.version}
        return super().state() | {
            "version": self.version,
            "orders": self.orders,
            "models": {version: self.learner.arrays_of(model) for version, model in older.items()},
            "windows": [window.state() for window in self.windows],
            "buffer": [outcome_state(outcome) for outcome in self.buffer],
            "resting": {cv: until_ns for cv, until_ns in self.resting.items() if until_ns > self.env.now},
            "tasks": [task.state() for task in sorted(tasks, key=lambda task: task.order.number)],
        }

    def restore(self, state: State) -> None:
        """Go on from there; orders in the order in which they were given, as their events are."""
        super().restore(state)
        self.version, self.orders = state["version"], state["orders"]
        self.models = {version: self.learner.model_of(arrays) for version, arrays in state["models"].items()}
        self.models[self.version] = self.model
        self.windows = [Window.restored(window, self.constants) for window in state["windows"]]
        self.buffer = [outcome_of(outcome) for outcome in state["buffer"]]
        self.resting = state["resting"]
        for cv, until_ns in self.resting.items():
            self._ask(cv, until_ns)
        for task in state["tasks"]:
            vehicle = self.in_coverage[task["order"]["cv"]]
            process = vehicle.resume(task)
            assert vehicle.task is not None
            self._follow(vehicle, vehicle.task.order, process)

    def on_entered(self, vehicle: ConnectedVehicle) -> None:
        """Who enters coverage asks at once."""
        self._ask(vehicle.number, self._earliest(vehicle.number))

    def _open(self) -> None:
        """Fresh shares for everybody; all who are idle ask."""
        k, count = self.round, len(self.in_coverage)
        self.stopwatch.round = k
        opened = self._note("round_started", k, count=count, version=self.version)
        self.windows.append(Window(k, self.env.now, count, opened))
        self.asking = {cv: self._earliest(cv) for cv, vehicle in self.in_coverage.items() if vehicle.task is None}
        self._answer()

    def _close(self) -> None:
        """Evaluate, and report the windows that are complete."""
        window, last = self.windows[-1], not self.timetable.has(self.round + 1, self.env.now)
        window.end_ns = self.env.now
        ended = self._note("round_ended", self.round, cause=window.opened, version=self.version)
        window.evaluation = self._evaluate(self.round, ended)
        complete = self.windows if last else self.windows[:-1]
        self.windows = self.windows[len(complete) :]
        for each in complete:
            self.report(each.closed())

    def _ask(self, cv: int, time_ns: int) -> None:
        """A CV will ask then; at the start of a window everybody does."""
        self.asking[cv] = time_ns
        _then(Instant(self.env, time_ns, Order.PULL), self._answer)

    def _earliest(self, cv: int) -> int:
        """When a CV may ask. Without constraints nothing but this keeps it from pushing more often than in rounds."""
        return max(self.env.now, self.resting.get(cv, 0))

    def _answer(self, _: Event | None = None) -> None:
        """Plan for all who ask now, together; whoever asks when a window ends belongs to the next."""
        now, window = self.env.now, self.windows[-1]
        if now >= window.start_ns + self.timetable.round_ns:
            return
        cvs = sorted(cv for cv, time_ns in self.asking.items() if time_ns <= now and cv in self.in_coverage)
        self.asking = {cv: time_ns for cv, time_ns in self.asking.items() if time_ns > now}
        if not cvs and window.decisions:
            return  # who has asked has gone
        with self.stopwatch("plan"):
            observation = self.observe(
                self.round, cvs, others=len(self.in_coverage) - len(cvs), committed=window.committed(cvs),
                horizon_ns=self.timetable.duration_ns - now,
            )  # fmt: skip
            plan = checked(observation, self.scheme.plan(observation))
        decision = Decision(observation, plan, [])
        window.decisions.append(decision)
        for vehicle, order, process in self._send(observation, plan, self._orders(observation, plan), window.opened):
            window.commit(order, vehicle.agreement)
            self._follow(vehicle, order, process)
        for cv, limit in plan.ineligible.items():
            if limit in ("time", "cpu") or cv not in window.cost:  # else its share is used up
                self._ask(cv, now + self.retry_ns)

    def _orders(self, observation: Observation, plan: Plan) -> Iterator[TrainOrder]:
        """Numbered, and with the version of the model that the CV takes along."""
        left_ns = self.timetable.duration_ns - self.env.now
        for order in orders_of(observation, plan):
            self.orders += 1
            wait_ns = min(order.train_ns, self.timetable.round_ns, left_ns) if plan.bypasses_network else None
            yield replace(order, number=self.orders, version=self.version, bypass_ns=wait_ns)

    def _follow(self, vehicle: ConnectedVehicle, order: TrainOrder, process: Process) -> None:
        """See to it that an order ends in time, and hear how."""
        self.under_way[order.number] = order
        _then(process, self._returned)
        if order.bypass_ns is not None:
            self.resting[order.cv] = order.ordered_ns + self.timetable.round_ns
        else:
            end_ns = min(order.ordered_ns + self.timetable.round_ns, self.timetable.duration_ns)
            _then(Instant(self.env, end_ns, Order.ROUND), lambda _: vehicle.expire(order))

    def _returned(self, process: Event) -> None:
        """A CV has pushed its update, or lost it; it asks for the next order in any case."""
        if not process.ok:
            return  # an error, which ends the run
        outcome: OrderOutcome = process.value  # type: ignore[assignment]
        order, delivered = outcome.order, outcome.lost is None
        del self.under_way[order.number]
        self._decision_of(order).outcomes.append(outcome)
        self.history.add([order.cv], [order.cv] if delivered else [])
        if delivered:
            self.buffer.append(outcome)
            if len(self.buffer) >= self.scheme.buffer:
                self._step()
        if order.cv in self.in_coverage:
            self._ask(order.cv, self._earliest(order.cv))

    def _decision_of(self, order: TrainOrder) -> Decision:
        """No two decisions are of the same instant."""
        [window] = (window for window in self.windows if window.round == order.round)
        [decision] = (d for d in window.decisions if d.observation.snapshot.time_ns == order.ordered_ns)
        return decision

    def _step(self) -> None:
        """Train what is in the buffer, each update from the model it started from, and step."""
        taken, self.buffer = self.buffer, []
        window, staleness = self.windows[-1], [self.version - _version(outcome) for outcome in taken]
        weights = checked_weights(self.scheme.weights(_received(taken, staleness)), len(taken))
        with self.stopwatch("train"):
            starts = [self.models[_version(outcome)] for outcome in taken]
            jobs = [LocalJob(o.order.cv, o.order.iterations, o.order.number) for o in taken]
            self.model = self.learner.combine(self.model, starts, self.learner.train(starts, jobs), weights)
        self.version += 1
        self._keep_models()
        for outcome, weight, stale in zip(taken, weights, staleness, strict=True):
            self._note(
                "update_aggregated", outcome.order.round, cv=outcome.order.cv, cause=outcome.event, weight=weight,
                version=outcome.order.version, staleness=stale,
            )  # fmt: skip
        self._note(
            "model_aggregated", self.round, cause=taken[-1].event, count=len(taken), weight=sum(weights),
            version=self.version,
        )  # fmt: skip
        window.applied += [Applied(weight, stale) for weight, stale in zip(weights, staleness, strict=True)]
        window.steps += 1

    def _keep_models(self) -> None:
        """The newest, and those that orders under way have started from; a full buffer leaves nothing behind."""
        used = {order.version for order in self.under_way.values()}
        self.models = {version: model for version, model in self.models.items() if version in used}
        self.models[self.version] = self.model


def _received(taken: list[OrderOutcome], staleness: list[int]) -> Received:
    orders = [outcome.order for outcome in taken]
    rows = [[o.cv for o in orders], [o.iterations for o in orders], [o.samples for o in orders], staleness]
    return Received(*(np.array(row, np.int64) for row in rows))


def _version(outcome: OrderOutcome) -> int:
    version = outcome.order.version
    assert version is not None  # we gave it
    return version


def _then(event: Event, act: Callable[[Event], None]) -> None:
    assert event.callbacks is not None  # it has not happened yet
    event.callbacks.append(act)
