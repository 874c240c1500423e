"""What the edge server knows of the CVs when it plans: positions, channels, agreements, success so far."""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from simpy import Event

from vefl_sim.core.arrays import Floats
from vefl_sim.core.clock import Stopwatch
from vefl_sim.core.state import SavedAttributes
from vefl_sim.protocol.control import Control, PlanDue
from vefl_sim.protocol.coverage import CoverageProcess
from vefl_sim.protocol.gnb import Broadcaster
from vefl_sim.protocol.instants import NanosecondEnvironment
from vefl_sim.protocol.server.orders import checked_plan
from vefl_sim.schemes.observation import CoverageSnapshot, Observation, RoundConstants, observe
from vefl_sim.schemes.scheme import Plan


@dataclass
class SuccessHistory(SavedAttributes):
    """Numbers of orders and of delivered updates by CV, over the run so far."""

    ordered: Counter[int] = field(default_factory=Counter)
    delivered: Counter[int] = field(default_factory=Counter)
    saved = ("ordered", "delivered")

    def add(self, cv: int, delivered: bool) -> None:
        """Count an order that has ended."""
        self.ordered[cv] += 1
        self.delivered[cv] += delivered

    def success(self, cvs: Iterable[int]) -> Floats:
        """p̂_suc = (1 + delivered)/(1 + ordered): a CV without history counts as one success, so p̂_suc is never 0."""
        return np.array([(1 + self.delivered[cv]) / (1 + self.ordered[cv]) for cv in cvs], np.float64)


@dataclass(frozen=True)
class Planner:
    """Takes snapshots of the CVs in coverage, and asks for plans: the scheme, or whoever steps through the run."""

    env: NanosecondEnvironment
    coverage: CoverageProcess
    history: SuccessHistory
    constants: RoundConstants
    samples: Mapping[int, int]  # CV -> D_v, the number of samples it holds
    sojourn_bound_s: Callable[[Floats, Floats], Floats]  # positions x_m, y_m -> sojourn bounds
    broadcaster: Broadcaster | None  # None: a CV has the model with its order
    scheme: Any  # Scheme or AsynchronousScheme
    control: Control
    stopwatch: Stopwatch

    def begin_round(self, round: int) -> None:
        """Measure times for this round from now on, and tell a channel that changes from round to round."""
        self.stopwatch.round = round
        if begin_round := getattr(self.coverage.channel, "begin_round", None):
            begin_round(int(self.env.now))

    def plan(
        self, round: int, cvs: Sequence[int] | None = None, **known: Any
    ) -> Generator[Event, Any, tuple[Observation, Plan]]:
        """What is observed now, and the plan for it, which is checked; arguments as those of `observe`."""
        is_asked = self.control.stops_for is PlanDue
        with self.stopwatch("plan"):
            observation = self.observe(round, cvs, **known)
            plan = None if is_asked else self.scheme.plan(observation)
        if is_asked:
            plan = yield self.control.ask(PlanDue(observation))
        return observation, checked_plan(observation, plan)

    def observe(self, round: int, cvs: Sequence[int] | None = None, **fields: Any) -> Observation:
        """Observe all CVs in coverage, or only `cvs` (ascending); `fields` are further fields of the snapshot."""
        observed = np.array(sorted(self.coverage.in_coverage) if cvs is None else cvs, dtype=np.int64)
        x_m, y_m = np.array([self.coverage.position_m(cv) for cv in observed]).reshape(-1, 2).T
        snapshot = CoverageSnapshot(
            round=round,
            time_ns=int(self.env.now),
            cv=observed,
            distance_m=np.hypot(x_m, y_m),
            sojourn_s=self.sojourn_bound_s(x_m, y_m),
            snr_per_watt=self.coverage.channel.mean_snr_per_watt(observed),
            worst_rate_bps=self.coverage.channel.worst_case_rate_bps(observed),
            samples=np.array([self.samples[cv] for cv in observed], dtype=np.int64),
            agreements=[self.coverage.in_coverage[cv].agreement for cv in observed],
            success=self.history.success(observed.tolist()),
            **fields,
        )
        if self.broadcaster:
            snapshot = replace(snapshot, downlink_ns=self.broadcaster.worst_ns(snapshot))
        return observe(snapshot, self.constants)
