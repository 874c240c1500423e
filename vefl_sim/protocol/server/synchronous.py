"""The synchronous server: rounds as in Algorithm 1 of the paper."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from simpy import AllOf, Event, Process

from vefl_sim.learning.learner import LocalJob, Start
from vefl_sim.protocol.events import Instant, Precedence
from vefl_sim.protocol.messages import Applied, Decision, RoundReport, Update
from vefl_sim.protocol.server.edge import EdgeServer
from vefl_sim.protocol.server.orders import checked_plan, checked_theorem2_sum, checked_weights, orders_of


@dataclass
class SynchronousServer(EdgeServer):
    """In each round: plan, order, wait for the updates, aggregate them, evaluate the model, report."""

    starts: dict[int, Start] = field(default_factory=dict)  # what each CV with an order in this round trains from

    def rounds(self) -> Generator[Event, Any, None]:
        """Algorithm 1: run one round after the other until the timetable ends."""
        yield Instant(self.env, self.env.now, Precedence.ROUND)
        self.model.start()
        while self.timetable.has(self.round, self.env.now):
            if not self.reporting.checkpoint():
                return
            decision, started = self._plan(self.round)
            work = self._broadcast(decision, started)
            yield self._end_of_round(decision, work)
            delivered = yield from self._collect(decision, work)
            ended = self._note("round_ended", self.round, cause=started, count=len(delivered))
            version, weights = self.model.version, self._aggregate(decision, delivered)
            self._report(decision, self._applied(delivered, weights), ended, self.model.version - version)
            self.round += 1
            yield Instant(self.env, self._next_slot_ns(), Precedence.ROUND)

    def _plan(self, k: int) -> tuple[Decision, int]:
        """Observe the CVs in coverage and let the scheme plan round k; also return the `round_started` event."""
        self.reporting.stopwatch.round = k
        with self.reporting.stopwatch("plan"):
            self.observe.begin_round()
            observation = self.observe(k)
            plan = checked_plan(observation, self.scheme.plan(observation))
        reason = f"{plan.status}, dropped to a selection" if plan.dropped else plan.status
        started = self._note("round_started", k, count=len(observation.cv), reason=reason, cost=plan.cost)
        return self._decision(observation, plan), started

    def _broadcast(self, decision: Decision, started: int) -> dict[int, Process]:
        """Send the orders; returns the process of each CV that got one, by its number."""
        orders = orders_of(decision.observation, decision.plan, decision.model_ns)
        vehicles, work = self.observe.in_coverage, {}
        self.starts = {}
        for order, event in self._announce(decision, orders, started):
            self.starts[order.cv] = self.start_of(order)
            work[order.cv] = vehicles[order.cv].accept(order, event)
        return work

    def _end_of_round(self, decision: Decision, work: dict[int, Process]) -> Event:
        """The end of t_th; with early_close, the end of all orders if that is earlier."""
        end = Instant(self.env, self.env.now + self.timetable.round_ns, Precedence.ROUND)
        early = self.timetable.early_close and work and not decision.plan.bypasses_network
        return AllOf(self.env, work.values()) | end if early else end

    def _collect(self, decision: Decision, work: dict[int, Process]) -> Generator[Event, Any, list[Update]]:
        """End the round for all CVs; then every order has an outcome. Returns the delivered updates, in CV order."""
        for process in work.values():
            if process.is_alive:
                process.interrupt("round_ended")
        yield AllOf(self.env, work.values())
        decision.outcomes.extend(process.value for process in work.values())  # type: ignore[misc]  # all have ended
        updates = [Update(outcome, self.starts[outcome.order.cv]) for outcome in decision.outcomes]
        delivered = [update for update in updates if update.delivered]
        self.observe.history.add(decision.plan.cv.tolist(), (update.outcome.order.cv for update in delivered))
        return delivered

    def _aggregate(self, decision: Decision, delivered: Sequence[Update]) -> list[float]:
        """Aggregate the delivered updates to ω_{k+1} with the weights that the scheme returns; return the weights."""
        if not delivered:
            return []
        cvs = np.array([update.outcome.order.cv for update in delivered], dtype=np.int64)
        returned = self.scheme.aggregate(decision.observation, decision.plan, cvs)
        weights = checked_weights(returned, len(delivered))
        with self.reporting.stopwatch("train"):
            weights = self.model.step(delivered, weights)
        self._tidy_memory()
        return weights

    def _applied(self, delivered: Sequence[Update], weights: Sequence[float]) -> list[Applied]:
        """The aggregated updates with their weights, each noted in the trace."""
        for update, weight in zip(delivered, weights, strict=True):
            cv, cause = update.outcome.order.cv, update.outcome.event
            self._note("update_aggregated", self.round, cv=cv, cause=cause, weight=weight)
        return [Applied(weight) for weight in weights]

    def _report(self, decision: Decision, applied: list[Applied], ended: int, steps: int) -> None:
        """Evaluate the model and report the round, which made `steps` new models."""
        snapshot, total = decision.observation.snapshot, sum(update.weight for update in applied)
        aggregated = self._note("model_aggregated", self.round, cause=ended, count=len(applied), weight=total)
        evaluation = self._evaluate(self.round, aggregated)
        self.reporting.report(
            RoundReport(
                round=self.round,
                start_ns=snapshot.time_ns,
                end_ns=self.env.now,
                in_coverage=snapshot.in_coverage,
                decisions=[decision],
                applied=applied,
                steps=steps,
                evaluation=evaluation,
                theorem2_sum=self._theorem2_sum(decision),
            )
        )

    def _theorem2_sum(self, decision: Decision) -> float | None:
        """The sum of Theorem 2, if the scheme has the optional method `theorem2_sum`; else None."""
        theorem2_sum = getattr(self.scheme, "theorem2_sum", None)
        return checked_theorem2_sum(theorem2_sum(decision.observation, decision.plan)) if theorem2_sum else None


EVERYTHING = 0
"""The CV number under which the learner of a centralized run holds all samples."""


@dataclass
class CentralServer(SynchronousServer):
    """Centralized training: one pass over all samples per round, at the server; no CV gets an order."""

    def _aggregate(self, decision: Decision, delivered: Sequence[Update]) -> list[float]:
        with self.reporting.stopwatch("train"):
            self.model.train(LocalJob(EVERYTHING, 1, self.round))
        return []
