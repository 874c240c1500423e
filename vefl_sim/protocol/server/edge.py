"""The edge server: Algorithm 1. Its pace says when it plans and when it aggregates (pace.py)."""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from simpy import Event

from vefl_sim.core.state import State, Stateful, from_state, optional_state, state_of
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.learner import Local, Start
from vefl_sim.learning.trees import plain
from vefl_sim.protocol.control import Control, RoundDue
from vefl_sim.protocol.coverage import CoverageProcess
from vefl_sim.protocol.gnb import Broadcaster
from vefl_sim.protocol.inbox import Assignment, Inbox
from vefl_sim.protocol.instants import Instant, NanosecondEnvironment, Precedence
from vefl_sim.protocol.messages import Applied, Decision, Loss, OrderOutcome, TrainOrder, Update, Window
from vefl_sim.protocol.observer import Planner, SuccessHistory
from vefl_sim.protocol.server.model import GlobalModel
from vefl_sim.protocol.server.pace import Pace
from vefl_sim.protocol.trace import (
    CvIneligible,
    CvPassedOver,
    ModelAggregated,
    ModelEvaluated,
    Trace,
    TrainingOrdered,
    UpdateAggregated,
)
from vefl_sim.schemes.observation import LastRound, RoundConstants


@dataclass(frozen=True)
class Timetable:
    """When rounds start and end, and after which of them the model is evaluated."""

    experiment: Experiment

    def has(self, round: int, start_ns: int) -> bool:
        """Whether the run has a round of this number, starting at this time."""
        experiment = self.experiment
        if experiment.run.rounds:
            return round <= experiment.run.rounds
        return start_ns + experiment.round_ns <= experiment.duration_ns

    def has_after(self, round: int, end_ns: int) -> bool:
        """Whether the run has another round after this one, which ends at this time."""
        return self.has(round + 1, self.next_start_ns(end_ns))

    def next_start_ns(self, time_ns: int) -> int:
        """Start of the first slot, and so of the first round, that does not start before this time."""
        grid = self.experiment.slots
        return grid.start_ns(grid.ceil(time_ns))

    def evaluates(self, round: int, end_ns: int) -> bool:
        """Whether the model is evaluated after this round: every so many rounds, and after the last one."""
        return round % self.experiment.learning.evaluate_every == 0 or not self.has_after(round, end_ns)


@dataclass
class EdgeServer:
    """Sends orders to CVs, aggregates their updates and evaluates the model; the only place where k is counted.

    Without rounds, k counts windows of t_th, and what is said of a round holds for a window.
    """

    env: NanosecondEnvironment
    timetable: Timetable
    pace: Pace
    planner: Planner
    model: GlobalModel
    coverage: CoverageProcess
    history: SuccessHistory
    broadcaster: Broadcaster | None  # None: a CV has the model with its order
    inbox: Inbox
    control: Control
    trace: Trace
    constants_at: Callable[[int, int], RoundConstants]  # the quantities of an earlier round, by its number and start
    round: int = 1  # k, number of the current round or of the next one
    windows: list[Window] = field(default_factory=list)  # rounds that are not reported yet, the current one last
    last: LastRound = field(default_factory=LastRound)  # what plans know of the rounds before

    def run(self) -> Generator[Event, Any, None]:
        """Algorithm 1: in each round, plan and order, collect the updates, aggregate them, evaluate and report."""
        yield Instant(self.env, self.env.now, self.pace.precedence)
        self.model.start()
        self.env.process(self.collect())
        while self.timetable.has(self.round, self.env.now):
            yield self.control.ask(RoundDue(self.round))
            self.planner.begin_round(self.round)
            window = Window(self.round, self.env.now, self.env.now, len(self.coverage.in_coverage))
            self.windows.append(window)
            yield from self.pace.order_and_wait(self, window)
            cause = self.pace.aggregate(self, window)
            self.evaluate(window, cause)
            self.report()
            self.round += 1
            yield Instant(self.env, self.timetable.next_start_ns(self.env.now), self.pace.precedence)

    def collect(self) -> Generator[Event, Any, None]:
        """During the whole run, take the updates that CVs turn in, delivered or lost."""
        while True:
            update: Update = yield self.inbox.updates.get()
            order = update.outcome.order
            [window] = (window for window in self.windows if window.round == order.round)
            window.add(update.outcome)
            self.history.add(order.cv, update.delivered)
            self.pace.receive(self, window, update)

    def decide(self, window: Window, cvs: Sequence[int] | None = None, **known: Any) -> Generator[Event, Any, Decision]:
        """Plan for all CVs in coverage, or for `cvs`, and send them the model; `known` is what else the plan uses."""
        observation, plan = yield from self.planner.plan(window.round, cvs, last=self.last, **known)
        sent = self.broadcaster.send(observation, plan) if self.broadcaster else None
        window.decisions.append(Decision(observation, plan, [], sent))
        return window.decisions[-1]

    def send(self, window: Window, decision: Decision, orders: Iterable[TrainOrder]) -> None:
        """Give the orders of a decision to their CVs, and note what was decided on each CV that was observed."""
        ordered = {order.cv: order for order in orders}
        for row, cv in enumerate(decision.observation.cv.tolist()):
            if order := ordered.get(cv):
                window.commit(order, self.coverage.in_coverage[cv].agreement)
                event = self.trace.note(TrainingOrdered(decision, row, order), window.opened)
                self.inbox.requests.pop(cv).succeed(Assignment(order, event, self.model.start_of(order)))
            elif cv in decision.plan.ineligible:
                self.trace.note(CvIneligible(decision, row), window.opened)
            else:
                self.trace.note(CvPassedOver(decision, row), window.opened)

    def revoke(self, order: TrainOrder, reason: Loss) -> None:
        """Tell the CV of an order that its time is over."""
        if vehicle := self.coverage.in_coverage.get(order.cv):
            vehicle.revoke(order, reason)

    def expire(self, order: TrainOrder) -> None:
        """End an order at its expiry, if it has one and is still in progress then."""
        if order.expiry_ns is not None:
            expiry = Instant(self.env, order.expiry_ns, Precedence.ROUND)
            expiry.callbacks.append(lambda _: self.revoke(order, "expired"))

    def step(self, window: Window, updates: Sequence[Update], weights: Sequence[float], cause: int) -> int:
        """Aggregate updates to the next model; without any, the model stays. Returns the event."""
        version, applied = self.model.version, list[Applied]()
        if updates:
            weights = self.model.step(updates, weights)
            window.steps += 1
        for update, weight in zip(updates, weights, strict=True):
            outcome, started = update.outcome, update.outcome.order.version
            applied.append(Applied(weight, 0 if started is None else version - started))
            self.trace.note(UpdateAggregated(outcome, applied[-1]), outcome.event)
        window.applied += applied
        made = self.model.version if self.pace.has_versions else None
        return self.trace.note(ModelAggregated(self.round, applied, made), cause)

    def evaluate(self, window: Window, cause: int) -> None:
        """End a round: evaluate the model, if that is due."""
        window.end_ns = self.env.now
        window.evaluation = self.model.evaluate(self.timetable.evaluates(window.round, self.env.now))
        if window.evaluation is not None:
            self.trace.note(ModelEvaluated(window.round, window.evaluation), cause)

    def report(self) -> None:
        """Report the rounds whose orders have all ended: with rounds this one, without rounds the one before it."""
        last = not self.timetable.has_after(self.round, self.env.now)
        count = len(self.windows) if last else len(self.windows) - self.pace.overlap
        complete, self.windows = self.windows[:count], self.windows[count:]
        for window in complete:
            window.close()
            self.last = _what_is_known(window, self.last)
            self.trace.tell(window)

    def state(self) -> State:
        """k, ω_k, what the scheme remembers, and the orders and updates under way.

        With rounds nothing is under way between two rounds. Without rounds, requests are not saved: idle CVs ask again.
        """
        pace, model = self.pace, self.model
        work = sorted(
            (vehicle.work for vehicle in self.coverage.in_coverage.values() if vehicle.work is not None),
            key=lambda work: work.order.number,
        )
        starts = {one.order.number: (one.order.version, one.start) for one in work}
        starts |= {one.outcome.order.number: (one.outcome.order.version, one.start) for one in pace.delivered}
        models = {version: start.model for version, start in starts.values() if version != model.version}
        return {
            "round": self.round,
            "last": state_of(self.last),
            "version": model.version,
            "model": model.learner.arrays_of(model.parameters),
            "scheme": optional_state(model.scheme),
            "memory": plain(model.scheme.memory),
            "coding": optional_state(model.coding),
            "broadcaster": optional_state(self.broadcaster),
            "models": {version: model.learner.arrays_of(earlier) for version, earlier in models.items()},
            "locals": {
                number: state_of(start.local) for number, (_, start) in starts.items() if start.local != Local()
            },
            "orders": pace.orders,
            "windows": state_of(self.windows),
            "delivered": state_of(pace.delivered),
            "resting": {cv: until_ns for cv, until_ns in pace.resting.items() if until_ns > self.env.now},
            "work": state_of(work),
        }

    def restore(self, state: State) -> None:
        """Restore the server from a checkpoint; orders resume by number, so simultaneous events keep their order."""
        pace, model = self.pace, self.model
        self.round, model.version = state["round"], state["version"]
        self.last = from_state(LastRound, state["last"])
        model.parameters = model.learner.model_of(state["model"])
        if state["scheme"] is not None:
            cast(Stateful, model.scheme).restore(state["scheme"])
        if state["memory"] is not None:
            if not isinstance(state["memory"], dict):
                raise TypeError("what the scheme remembers is not a dict")
            model.scheme.memory = state["memory"]
        for part, saved in ((model.coding, state["coding"]), (self.broadcaster, state["broadcaster"])):
            if part:
                part.restore(saved)
        models = {version: model.learner.model_of(arrays) for version, arrays in state["models"].items()}
        models[model.version] = model.parameters
        local = {number: Local(**saved) for number, saved in state["locals"].items()}

        def start(version: Any, number: int) -> Start:
            return Start(models[version], local.get(number, Local()))

        pace.orders, pace.resting = state["orders"], state["resting"]
        self.windows = [
            from_state(Window, window, constants=self.constants_at(window["round"], window["start_ns"]))
            for window in state["windows"]
        ]
        outcomes = [from_state(OrderOutcome, update["outcome"]) for update in state["delivered"]]
        pace.delivered = [Update(one, start(one.order.version, one.order.number)) for one in outcomes]
        vehicles = self.coverage.in_coverage
        for work in state["work"]:
            saved, vehicle = work["order"], vehicles[work["order"]["cv"]]
            order = vehicle.resume(work, start(saved["version"], saved["number"]))
            vehicle.start()
            self.expire(order)
        for vehicle in vehicles.values():
            if vehicle.work is None:
                vehicle.start()


def _what_is_known(round: Window, before: LastRound) -> LastRound:
    """What the server knows of a round later; without an evaluation, that of the rounds `before` still counts."""
    outcomes, evaluation = round.outcomes, round.evaluation
    return LastRound(
        accuracy=before.accuracy if evaluation is None else evaluation.accuracy or 0.0,
        loss=before.loss if evaluation is None else evaluation.loss,
        paid=sum(outcome.account.paid for outcome in outcomes),
        ordered=len(outcomes),
        delivered=sum(outcome.lost is None for outcome in outcomes),
    )
