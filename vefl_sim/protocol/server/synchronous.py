"""Rounds: observe, plan, order, wait, aggregate, evaluate."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from simpy import AllOf, Event, Process

from vefl_sim.learning.learner import LocalJob
from vefl_sim.protocol.events import Instant, Order
from vefl_sim.protocol.messages import Applied, Decision, OrderOutcome, RoundReport
from vefl_sim.protocol.server.edge import EdgeServer
from vefl_sim.protocol.server.orders import checked, checked_sum, checked_weights, orders_of
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Plan


@dataclass
class SynchronousServer(EdgeServer):
    """Leads the rounds."""

    def rounds(self) -> Generator[Event, Any, None]:
        """One round after the other until the timetable ends."""
        yield Instant(self.env, self.env.now, Order.ROUND)
        if self.round == 1:
            self.model = self.learner.initial_model()
        while self.timetable.has(self.round, self.env.now):
            if not self.checkpoint():
                return
            yield from self._round(self.round)
            self.round += 1
            yield Instant(self.env, self._next_slot_ns(), Order.ROUND)

    def _round(self, k: int) -> Generator[Event, Any, None]:
        self.stopwatch.round = k
        started = self.env.now
        observation, plan, opened = self._open(k)
        ordered = list(self._send(observation, plan, orders_of(observation, plan), opened))
        work = [process for _, _, process in ordered]
        yield self._end_of_round(started, [] if plan.bypasses_network else work)
        for vehicle, _, process in ordered:
            if process.is_alive:
                vehicle.end_round()
        yield AllOf(self.env, work)
        outcomes: list[OrderOutcome] = [process.value for process in work]  # type: ignore[misc]  # all have ended
        self._close(Decision(observation, plan, outcomes), opened)

    def _open(self, k: int) -> tuple[Observation, Plan, int]:
        with self.stopwatch("plan"):
            observation = self.observe(k)
            plan = checked(observation, self.scheme.plan(observation))
        reason = f"{plan.status}, dropped to a selection" if plan.dropped else plan.status
        cause = self._note("round_started", k, count=len(observation.cv), reason=reason, cost=plan.cost)
        return observation, plan, cause

    def _end_of_round(self, started: int, work: list[Process]) -> Event:
        end = Instant(self.env, started + self.timetable.round_ns, Order.ROUND)
        return AllOf(self.env, work) | end if self.timetable.early_close and work else end

    def _close(self, decision: Decision, opened: int) -> None:
        """Aggregate, evaluate, report."""
        snapshot = decision.observation.snapshot
        k = snapshot.round
        delivered = [outcome for outcome in decision.outcomes if outcome.lost is None]
        self.history.add(decision.plan.cv.tolist(), (outcome.order.cv for outcome in delivered))
        ended = self._note("round_ended", k, cause=opened, count=len(delivered))
        weights = self._learn(decision, delivered)
        for outcome, weight in zip(delivered, weights, strict=True):
            self._note("update_aggregated", k, cv=outcome.order.cv, cause=outcome.event, weight=weight)
        event = self._note("model_aggregated", k, cause=ended, count=len(delivered), weight=sum(weights))
        evaluation = self._evaluate(k, event)
        applied = [Applied(weight) for weight in weights]
        closed = RoundReport(
            k,
            snapshot.time_ns,
            self.env.now,
            snapshot.in_coverage,
            [decision],
            applied,
            int(self._steps(delivered)),
            evaluation,
            self._theorem2_sum(decision),
        )
        self.report(closed)

    def _theorem2_sum(self, decision: Decision) -> float | None:
        """Of the schemes that have one; others need not know of it."""
        tell = getattr(self.scheme, "theorem2_sum", None)
        return checked_sum(tell(decision.observation, decision.plan)) if tell else None

    def _steps(self, delivered: list[OrderOutcome]) -> bool:
        """Whether there is a new model."""
        return bool(delivered)

    def _learn(self, decision: Decision, delivered: list[OrderOutcome]) -> list[float]:
        """Train what was delivered, in one call and CV order, and step; return the weights."""
        if not delivered:
            return []
        cvs = np.array([outcome.order.cv for outcome in delivered], dtype=np.int64)
        given = self.scheme.aggregate(decision.observation, decision.plan, cvs)
        weights = checked_weights(given, len(delivered))
        with self.stopwatch("train"):
            jobs = [LocalJob(o.order.cv, o.order.iterations, o.order.number) for o in delivered]
            starts = [self.model] * len(jobs)
            updates = self.learner.train(starts, jobs)
            if self.averages_models:
                self.model = self.learner.average(updates, weights)
            else:
                self.model = self.learner.combine(self.model, starts, updates, weights)
        return weights


EVERYTHING = 0
"""Under this number of a CV the learner holds all samples."""


@dataclass
class CentralServer(SynchronousServer):
    """Goes through all samples once in a round; nobody gets an order."""

    def _steps(self, delivered: list[OrderOutcome]) -> bool:
        return True

    def _learn(self, decision: Decision, delivered: list[OrderOutcome]) -> list[float]:
        with self.stopwatch("train"):
            [self.model] = self.learner.train([self.model], [LocalJob(EVERYTHING, 1, self.round)])
        return []
