"""The edge server of synchronous schemes: observe, plan, order, wait, aggregate, evaluate."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from simpy import AllOf, Event, Process

from vefl_sim.clock import SlotGrid
from vefl_sim.learning.learner import Evaluation, Learner, LocalJob
from vefl_sim.protocol.environment import NanosecondEnvironment
from vefl_sim.protocol.instant import Instant, Order
from vefl_sim.protocol.messages import ClosedRound, Outcome, TrainOrder
from vefl_sim.protocol.orders import checked, checked_weights, orders_of
from vefl_sim.protocol.timetable import Timetable
from vefl_sim.protocol.vehicle import ConnectedVehicle
from vefl_sim.schemes.observation import Observation, sojourn_ns
from vefl_sim.schemes.record import Record
from vefl_sim.schemes.scheme import Plan, Scheme
from vefl_sim.state import State, Stateful, told
from vefl_sim.stopwatch import Stopwatch
from vefl_sim.trace import Trace


@dataclass
class EdgeServer:
    """Leads the rounds; k is counted here and nowhere else."""

    env: NanosecondEnvironment
    timetable: Timetable
    scheme: Scheme
    learner: Learner
    observe: Callable[[int], Observation]
    record: Record
    in_coverage: dict[int, ConnectedVehicle]
    trace: Trace
    stopwatch: Stopwatch
    report: Callable[[ClosedRound], None]
    go_on: Callable[[], bool]  # asked between two rounds, when nothing is under way
    round: int = 1  # k, of the round that runs or starts next
    model: Any = None

    def rounds(self) -> Generator[Event, Any, None]:
        """One round after the other until the timetable ends."""
        yield Instant(self.env, self.env.now, Order.ROUND)
        if self.round == 1:
            self.model = self.learner.initial_model()
        while self.timetable.has(self.round, self.env.now) and self.go_on():
            yield from self._round(self.round)
            self.round += 1
            yield Instant(self.env, self._next_slot_ns(), Order.ROUND)

    def _round(self, k: int) -> Generator[Event, Any, None]:
        self.stopwatch.round = k
        started = self.env.now
        observation, plan, opened = self._open(k)
        ordered = self._send(observation, plan, opened)
        work = [process for _, process in ordered]
        yield self._end_of_round(started, [] if plan.assured else work)
        for vehicle, process in ordered:
            if process.is_alive:
                vehicle.end_round()
        yield AllOf(self.env, work)
        outcomes: list[Outcome] = [process.value for process in work]  # type: ignore[misc]  # all have ended
        self._close(observation, plan, outcomes, opened)

    def state(self) -> State:
        """k and ω_k; a scheme of the user's may have something to remember, too."""
        return {"round": self.round, "model": self.learner.arrays_of(self.model), "scheme": told(self.scheme)}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self.round, self.model = state["round"], self.learner.model_of(state["model"])
        if state["scheme"] is not None:
            cast(Stateful, self.scheme).restore(state["scheme"])

    def _open(self, k: int) -> tuple[Observation, Plan, int]:
        with self.stopwatch("plan"):
            observation = self.observe(k)
            plan = checked(observation, self.scheme.plan(observation))
        reason = f"{plan.status}, dropped to a selection" if plan.dropped else plan.status
        cause = self._note("round_started", k, count=len(observation.cv), reason=reason, cost=plan.cost)
        return observation, plan, cause

    def _send(self, observation: Observation, plan: Plan, cause: int) -> list[tuple[ConnectedVehicle, Process]]:
        """Order the selected CVs, and say of the others why they are not."""
        k, sent = observation.sighting.round, []
        orders = {order.cv: order for order in orders_of(observation, plan)}
        for row, cv in enumerate(observation.cv.tolist()):
            seen = _seen(observation, row) | {"cv": cv, "cause": cause, "max_iterations": plan.max_iterations.get(cv)}
            if order := orders.get(cv):
                event = self._note("training_ordered", k, **seen, **_asked(order, self.timetable.grid))
                vehicle = self.in_coverage[cv]
                sent.append((vehicle, vehicle.accept(order, event)))
            elif limit := plan.ineligible.get(cv):
                self._note("cv_ineligible", k, reason=limit, **seen)
            else:
                self._note("cv_passed_over", k, **seen)
        return sent

    def _end_of_round(self, started: int, work: list[Process]) -> Event:
        end = Instant(self.env, started + self.timetable.round_ns, Order.ROUND)
        return AllOf(self.env, work) | end if self.timetable.early_close and work else end

    def _close(self, observation: Observation, plan: Plan, outcomes: list[Outcome], opened: int) -> None:
        """Aggregate, evaluate, report."""
        k = observation.sighting.round
        delivered = [outcome for outcome in outcomes if outcome.lost is None]
        self.record.add(plan.cv.tolist(), (outcome.order.cv for outcome in delivered))
        ended = self._note("round_ended", k, cause=opened, count=len(delivered))
        weights = self._aggregate(observation, plan, delivered) if delivered else []
        for outcome, weight in zip(delivered, weights, strict=True):
            self._note("update_aggregated", k, cv=outcome.order.cv, cause=outcome.event, weight=weight)
        event = self._note("model_aggregated", k, cause=ended, count=len(delivered), weight=sum(weights))
        evaluation = self._evaluate(k, event)
        self.report(ClosedRound(self.env.now, observation, plan, outcomes, weights, evaluation))

    def _aggregate(self, observation: Observation, plan: Plan, delivered: list[Outcome]) -> list[float]:
        """Train what was delivered, in one call and CV order, and step; return the weights."""
        cvs = np.array([outcome.order.cv for outcome in delivered], dtype=np.int64)
        weights = checked_weights(self.scheme.aggregate(observation, plan, cvs), len(delivered))
        with self.stopwatch("train"):
            jobs = [LocalJob(o.order.cv, o.order.iterations, o.order.round) for o in delivered]
            updates = self.learner.train(self.model, jobs)
            self.model = self.learner.combine(self.model, updates, weights)
        return weights

    def _evaluate(self, k: int, cause: int) -> Evaluation | None:
        last = not self.timetable.has(k + 1, self._next_slot_ns())
        if k % self.timetable.evaluate_every and not last:
            return None
        with self.stopwatch("evaluate"):
            evaluation = self.learner.evaluate(self.model)
        if evaluation is not None:
            self._note("model_evaluated", k, cause=cause, accuracy=evaluation.accuracy, loss=evaluation.loss)
        return evaluation

    def _next_slot_ns(self) -> int:
        grid = self.timetable.grid
        return grid.start_ns(grid.ceil(self.env.now))

    def _note(self, kind: str, k: int, **columns: Any) -> int:
        return self.trace.note(self.env.now, kind, "server", round=k, **columns)


def _seen(observation: Observation, row: int) -> dict[str, Any]:
    """What the server knew of a CV when it planned."""
    sighting = observation.sighting
    return {
        "distance_m": float(sighting.distance_m[row]),
        "sojourn_ns": sojourn_ns(float(sighting.sojourn_s[row])),
        "mean_snr_db": observation.mean_snr_db(row),
        "worst_slots": int(observation.worst_slots[row]),
        "train_limit_ns": int(observation.train_limit_ns[row]),
    }


def _asked(order: TrainOrder, grid: SlotGrid) -> dict[str, Any]:
    """What the order asks for."""
    return {
        "iterations": order.iterations,
        "cpu_hz": order.cpu_hz,
        "train_ns": order.train_ns,
        "earliest_ns": grid.start_ns(order.earliest_slot),
        "deadline_ns": grid.start_ns(order.deadline_slot),
    }
