"""The asynchronous server: idle CVs request orders, and a full buffer of updates is aggregated. There are no rounds.

Budgets and tables are per window of t_th. An order belongs to the window in which it was given, and expires t_th after
that; so all orders of a window have ended when the next window ends.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from simpy import Event, Process

from vefl_sim.core.state import State
from vefl_sim.learning.learner import LocalJob, Model
from vefl_sim.protocol.events import Instant, Precedence
from vefl_sim.protocol.messages import Applied, Decision, OrderOutcome, TrainOrder
from vefl_sim.protocol.server.edge import EdgeServer
from vefl_sim.protocol.server.orders import checked_plan, checked_weights, orders_of
from vefl_sim.protocol.server.window import Window, outcome_from_state, outcome_state
from vefl_sim.protocol.vehicle import ConnectedVehicle
from vefl_sim.schemes.observation import Observation, RoundConstants
from vefl_sim.schemes.scheme import Plan, Received


@dataclass
class AsynchronousServer(EdgeServer):
    """Answers the requests of CVs, and aggregates the buffered updates (a server step) when the buffer is full."""

    constants: RoundConstants = field(kw_only=True)
    retry_ns: int = field(kw_only=True)  # time after which a CV repeats a request that was refused for lack of time
    version: int = 0  # of the global model: number of server steps so far
    orders: int = 0  # number of orders given so far
    models: dict[int, Model] = field(default_factory=dict)  # by version: the newest, and those that updates start from
    windows: list[Window] = field(default_factory=list)  # not reported yet; the last one is open
    buffer: list[OrderOutcome] = field(default_factory=list)  # delivered updates that are not aggregated yet
    requests_ns: dict[int, int] = field(default_factory=dict)  # CV -> time of its next request
    in_progress: dict[int, TrainOrder] = field(default_factory=dict)  # by order number
    resting: dict[int, int] = field(default_factory=dict)  # without constraints: CV -> earliest next request

    def rounds(self) -> Generator[Event, Any, None]:
        """Open one window after the other; within a window the server only reacts to requests and updates of CVs."""
        yield Instant(self.env, self.env.now, Precedence.REQUEST)
        if not self.models:
            self.model = self.models[0] = self.learner.initial_model()
        while self.timetable.has(self.round, self.env.now):
            if not self.checkpoint():
                return
            self._open_window()
            yield Instant(self.env, self.env.now + self.timetable.round_ns, Precedence.REQUEST)
            self._close_window()
            self.round += 1

    def state(self) -> State:
        """Windows, buffer and orders in progress; requests are not saved: idle CVs repeat them in the next window."""
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
        """Restore the server from a checkpoint; orders resume by number, so simultaneous events keep their order."""
        super().restore(state)
        self.version, self.orders = state["version"], state["orders"]
        self.models = {version: self.learner.model_of(arrays) for version, arrays in state["models"].items()}
        self.models[self.version] = self.model
        self.windows = [Window.from_state(window, self.constants) for window in state["windows"]]
        self.buffer = [outcome_from_state(outcome) for outcome in state["buffer"]]
        self.resting = state["resting"]
        for cv, until_ns in self.resting.items():
            self._request(cv, until_ns)
        for task in state["tasks"]:
            vehicle = self.in_coverage[task["order"]["cv"]]
            process = vehicle.resume(task)
            assert vehicle.task is not None
            self._track(vehicle, vehicle.task.order, process)

    def on_entered(self, vehicle: ConnectedVehicle) -> None:
        """A CV that enters coverage requests an order at once."""
        self._request(vehicle.number, self._earliest_request_ns(vehicle.number))

    def _open_window(self) -> None:
        """Open the next window, with a new budget; all idle CVs request an order."""
        k, count = self.round, len(self.in_coverage)
        self.stopwatch.round = k
        opened = self._note("round_started", k, count=count, version=self.version)
        self.windows.append(Window(k, self.env.now, count, opened))
        self.requests_ns = {
            cv: self._earliest_request_ns(cv) for cv, vehicle in self.in_coverage.items() if vehicle.task is None
        }
        self._answer_requests()

    def _close_window(self) -> None:
        """Evaluate the model, and report the windows whose orders have all ended."""
        window, last = self.windows[-1], not self.timetable.has(self.round + 1, self.env.now)
        window.end_ns = self.env.now
        ended = self._note("round_ended", self.round, cause=window.opened, version=self.version)
        window.evaluation = self._evaluate(self.round, ended)
        complete = self.windows if last else self.windows[:-1]
        self.windows = self.windows[len(complete) :]
        for finished in complete:
            self.report(finished.report())

    def _request(self, cv: int, time_ns: int) -> None:
        """Let a CV request an order at this time."""
        self.requests_ns[cv] = time_ns
        _when(Instant(self.env, time_ns, Precedence.REQUEST), self._answer_requests)

    def _earliest_request_ns(self, cv: int) -> int:
        """Earliest time at which a CV may request an order: now, or without constraints t_th after its last order.

        Without this limit an unconstrained CV would deliver more updates than it could with rounds.
        """
        return max(self.env.now, self.resting.get(cv, 0))

    def _answer_requests(self, _: Event | None = None) -> None:
        """Make one plan for all CVs whose request is due; a request at the end of a window belongs to the next one."""
        now, window = self.env.now, self.windows[-1]
        if now >= window.start_ns + self.timetable.round_ns:
            return
        cvs = sorted(cv for cv, time_ns in self.requests_ns.items() if time_ns <= now and cv in self.in_coverage)
        self.requests_ns = {cv: time_ns for cv, time_ns in self.requests_ns.items() if time_ns > now}
        if not cvs and window.decisions:
            return  # the CVs that requested an order have left coverage
        with self.stopwatch("plan"):
            observation = self.observe(
                self.round, cvs, others=len(self.in_coverage) - len(cvs), committed=window.committed(cvs),
                horizon_ns=self.timetable.duration_ns - now,
            )  # fmt: skip
            plan = checked_plan(observation, self.scheme.plan(observation))
        decision = Decision(observation, plan, [])
        window.decisions.append(decision)
        for vehicle, order, process in self._broadcast(
            observation, plan, self._orders(observation, plan), window.opened
        ):
            window.commit(order, vehicle.agreement)
            self._track(vehicle, order, process)
        for cv, limit in plan.ineligible.items():
            if limit in ("time", "cpu") or cv not in window.cost:  # else its share of this window is used up
                self._request(cv, now + self.retry_ns)

    def _orders(self, observation: Observation, plan: Plan) -> Iterator[TrainOrder]:
        """The orders of a plan, with their numbers and the current model version."""
        left_ns = self.timetable.duration_ns - self.env.now
        for order in orders_of(observation, plan):
            self.orders += 1
            wait_ns = min(order.train_ns, self.timetable.round_ns, left_ns) if plan.bypasses_network else None
            yield replace(order, number=self.orders, version=self.version, bypass_ns=wait_ns)

    def _track(self, vehicle: ConnectedVehicle, order: TrainOrder, process: Process) -> None:
        """Handle the outcome of an order when it ends, and let it expire after t_th."""
        self.in_progress[order.number] = order
        _when(process, self._order_ended)
        if order.bypass_ns is not None:
            self.resting[order.cv] = order.ordered_ns + self.timetable.round_ns
        else:
            end_ns = min(order.ordered_ns + self.timetable.round_ns, self.timetable.duration_ns)
            _when(Instant(self.env, end_ns, Precedence.ROUND), lambda _: vehicle.expire(order))

    def _order_ended(self, process: Event) -> None:
        """Handle the end of an order: buffer a delivered update, and let the CV request its next order."""
        if not process.ok:
            return  # the process raised an error, which ends the run
        outcome: OrderOutcome = process.value  # type: ignore[assignment]
        order, delivered = outcome.order, outcome.lost is None
        del self.in_progress[order.number]
        self._decision_of(order).outcomes.append(outcome)
        self.history.add([order.cv], [order.cv] if delivered else [])
        if delivered:
            self.buffer.append(outcome)
            if len(self.buffer) >= self.scheme.buffer:
                self._step()
        if order.cv in self.in_coverage:
            self._request(order.cv, self._earliest_request_ns(order.cv))

    def _decision_of(self, order: TrainOrder) -> Decision:
        """The decision that gave an order; it is unique, because at most one decision is made at an instant."""
        [window] = (window for window in self.windows if window.round == order.round)
        [decision] = (d for d in window.decisions if d.observation.snapshot.time_ns == order.ordered_ns)
        return decision

    def _step(self) -> None:
        """Compute the buffered updates, each from its own model version, and aggregate them to the next version."""
        buffered, self.buffer = self.buffer, []
        window, staleness = self.windows[-1], [self.version - _start_version(outcome) for outcome in buffered]
        weights = checked_weights(self.scheme.weights(_received(buffered, staleness)), len(buffered))
        with self.stopwatch("train"):
            starts = [self.models[_start_version(outcome)] for outcome in buffered]
            jobs = [LocalJob(o.order.cv, o.order.iterations, o.order.number) for o in buffered]
            self.model = self.learner.combine(self.model, starts, self.learner.train(starts, jobs), weights)
        self.version += 1
        self._drop_unused_models()
        for outcome, weight, stale in zip(buffered, weights, staleness, strict=True):
            self._note(
                "update_aggregated", outcome.order.round, cv=outcome.order.cv, cause=outcome.event, weight=weight,
                version=outcome.order.version, staleness=stale,
            )  # fmt: skip
        self._note(
            "model_aggregated", self.round, cause=buffered[-1].event, count=len(buffered), weight=sum(weights),
            version=self.version,
        )  # fmt: skip
        window.applied += [Applied(weight, stale) for weight, stale in zip(weights, staleness, strict=True)]
        window.steps += 1

    def _drop_unused_models(self) -> None:
        """Keep only the newest model and those that orders in progress train from; the buffer is empty at this time."""
        used = {order.version for order in self.in_progress.values()}
        self.models = {version: model for version, model in self.models.items() if version in used}
        self.models[self.version] = self.model


def _received(outcomes: list[OrderOutcome], staleness: list[int]) -> Received:
    """The buffered updates as arrays, for the scheme."""
    orders = [outcome.order for outcome in outcomes]
    rows = [[o.cv for o in orders], [o.iterations for o in orders], [o.samples for o in orders], staleness]
    return Received(*(np.array(row, np.int64) for row in rows))


def _start_version(outcome: OrderOutcome) -> int:
    """Model version the CV trained from."""
    version = outcome.order.version
    assert version is not None  # set by _orders
    return version


def _when(event: Event, callback: Callable[[Event], None]) -> None:
    """Call `callback` when the event is processed."""
    assert event.callbacks is not None  # the event has not been processed yet
    event.callbacks.append(callback)
