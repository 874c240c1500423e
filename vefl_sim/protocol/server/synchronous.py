"""The synchronous server: rounds as in Algorithm 1 of the paper."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from simpy import AllOf, Event, Process

from vefl_sim.learning.learner import LocalJob
from vefl_sim.protocol.events import Instant, Precedence
from vefl_sim.protocol.messages import Applied, Decision, OrderOutcome, RoundReport
from vefl_sim.protocol.server.edge import EdgeServer
from vefl_sim.protocol.server.orders import checked_plan, checked_theorem2_sum, checked_weights, orders_of
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Plan


@dataclass
class SynchronousServer(EdgeServer):
    """In each round: observe and plan, broadcast orders, wait for the updates, aggregate them, evaluate."""

    def rounds(self) -> Generator[Event, Any, None]:
        """Run one round after the other until the timetable ends."""
        yield Instant(self.env, self.env.now, Precedence.ROUND)
        if self.round == 1:
            self.model = self.learner.initial_model()
        while self.timetable.has(self.round, self.env.now):
            if not self.checkpoint():
                return
            yield from self._round(self.round)
            self.round += 1
            yield Instant(self.env, self._next_slot_ns(), Precedence.ROUND)

    def _round(self, k: int) -> Generator[Event, Any, None]:
        """Run round k; when it ends, every order has an outcome."""
        self.stopwatch.round = k
        start_ns = self.env.now
        observation, plan, started = self._plan(k)
        ordered = list(self._broadcast(observation, plan, orders_of(observation, plan), started))
        work = [process for _, _, process in ordered]
        yield self._end_of_round(start_ns, [] if plan.bypasses_network else work)
        for vehicle, _, process in ordered:
            if process.is_alive:
                vehicle.end_round()
        yield AllOf(self.env, work)
        outcomes: list[OrderOutcome] = [process.value for process in work]  # type: ignore[misc]  # all have ended
        self._finish_round(Decision(observation, plan, outcomes), started)

    def _plan(self, k: int) -> tuple[Observation, Plan, int]:
        """Observe the CVs in coverage and let the scheme plan the round; also return the `round_started` event."""
        with self.stopwatch("plan"):
            observation = self.observe(k)
            plan = checked_plan(observation, self.scheme.plan(observation))
        reason = f"{plan.status}, dropped to a selection" if plan.dropped else plan.status
        started = self._note("round_started", k, count=len(observation.cv), reason=reason, cost=plan.cost)
        return observation, plan, started

    def _end_of_round(self, start_ns: int, work: list[Process]) -> Event:
        """The end of t_th; with early_close, the end of all orders if that is earlier."""
        end = Instant(self.env, start_ns + self.timetable.round_ns, Precedence.ROUND)
        return AllOf(self.env, work) | end if self.timetable.early_close and work else end

    def _finish_round(self, decision: Decision, started: int) -> None:
        """Aggregate the delivered updates, evaluate the model and report the round."""
        snapshot = decision.observation.snapshot
        k = snapshot.round
        delivered = [outcome for outcome in decision.outcomes if outcome.lost is None]
        self.history.add(decision.plan.cv.tolist(), (outcome.order.cv for outcome in delivered))
        ended = self._note("round_ended", k, cause=started, count=len(delivered))
        weights = self._aggregate(decision, delivered)
        for outcome, weight in zip(delivered, weights, strict=True):
            self._note("update_aggregated", k, cv=outcome.order.cv, cause=outcome.event, weight=weight)
        aggregated = self._note("model_aggregated", k, cause=ended, count=len(delivered), weight=sum(weights))
        evaluation = self._evaluate(k, aggregated)
        applied = [Applied(weight) for weight in weights]
        report = RoundReport(
            k,
            snapshot.time_ns,
            self.env.now,
            snapshot.in_coverage,
            [decision],
            applied,
            int(self._has_new_model(delivered)),
            evaluation,
            self._theorem2_sum(decision),
        )
        self.report(report)

    def _theorem2_sum(self, decision: Decision) -> float | None:
        """The sum of Theorem 2, if the scheme has the optional method `theorem2_sum`; else None."""
        theorem2_sum = getattr(self.scheme, "theorem2_sum", None)
        return checked_theorem2_sum(theorem2_sum(decision.observation, decision.plan)) if theorem2_sum else None

    def _has_new_model(self, delivered: list[OrderOutcome]) -> bool:
        """Whether the round changes the global model."""
        return bool(delivered)

    def _aggregate(self, decision: Decision, delivered: list[OrderOutcome]) -> list[float]:
        """Compute the delivered updates in one call, in CV order, and aggregate them to ω_{k+1}; return the weights."""
        if not delivered:
            return []
        cvs = np.array([outcome.order.cv for outcome in delivered], dtype=np.int64)
        returned = self.scheme.aggregate(decision.observation, decision.plan, cvs)
        weights = checked_weights(returned, len(delivered))
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
"""The CV number under which the learner of a centralized run holds all samples."""


@dataclass
class CentralServer(SynchronousServer):
    """Centralized training: one pass over all samples per round, at the server; no CV gets an order."""

    def _has_new_model(self, delivered: list[OrderOutcome]) -> bool:
        return True

    def _aggregate(self, decision: Decision, delivered: list[OrderOutcome]) -> list[float]:
        with self.stopwatch("train"):
            [self.model] = self.learner.train([self.model], [LocalJob(EVERYTHING, 1, self.round)])
        return []
