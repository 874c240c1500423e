"""The edge server's view of its coverage: the CVs, their positions, channels, agreements and success so far."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.core.state import State
from vefl_sim.protocol.broadcaster import Broadcaster
from vefl_sim.protocol.coverage import CoverageProcess
from vefl_sim.protocol.events import NanosecondEnvironment
from vefl_sim.protocol.vehicle import ConnectedVehicle
from vefl_sim.radio.channel import Channel
from vefl_sim.schemes.observation import CoverageSnapshot, Observation, RoundConstants, observe


@dataclass
class SuccessHistory:
    """Numbers of orders and of delivered updates by CV, over the run so far."""

    ordered: Counter[int] = field(default_factory=Counter)
    delivered: Counter[int] = field(default_factory=Counter)

    def add(self, ordered: Iterable[int], delivered: Iterable[int]) -> None:
        """Count the orders and the delivered updates of a round."""
        self.ordered.update(ordered)
        self.delivered.update(delivered)

    def state(self) -> State:
        """Both counts, for a checkpoint."""
        return {"ordered": dict(self.ordered), "delivered": dict(self.delivered)}

    def restore(self, state: State) -> None:
        """Restore both counts from a checkpoint."""
        self.ordered, self.delivered = Counter(state["ordered"]), Counter(state["delivered"])

    def success(self, cvs: Iterable[int]) -> Floats:
        """p̂_suc = (1 + delivered)/(1 + ordered): a CV without history counts as one success, so p̂_suc is never 0."""
        return np.array([(1 + self.delivered[cv]) / (1 + self.ordered[cv]) for cv in cvs], np.float64)


@dataclass(frozen=True)
class Observer:
    """Takes a snapshot of the CVs in coverage, and adds the worst-case upload times that plans are based on."""

    env: NanosecondEnvironment
    coverage: CoverageProcess
    channel: Channel
    history: SuccessHistory
    constants: RoundConstants
    samples: Mapping[int, int]  # CV -> D_v, the number of samples it holds
    sojourn_bound_s: Callable[[Floats, Floats], Floats]  # positions x_m, y_m -> sojourn bounds
    broadcaster: Broadcaster | None = None  # None: a CV has the model with its order

    @property
    def in_coverage(self) -> dict[int, ConnectedVehicle]:
        """The CVs in coverage now, by number."""
        return self.coverage.in_coverage

    def begin_round(self) -> None:
        """Tell a channel that changes from round to round that a round starts: it has the optional `begin_round`."""
        if begin_round := getattr(self.channel, "begin_round", None):
            begin_round(int(self.env.now))

    def __call__(self, round: int, cvs: Sequence[int] | None = None, **fields: Any) -> Observation:
        """Observe all CVs in coverage, or only `cvs` (ascending); `fields` are further fields of the snapshot."""
        observed = np.array(sorted(self.in_coverage) if cvs is None else cvs, dtype=np.int64)
        x_m, y_m = np.array([self.coverage.position_m(cv) for cv in observed]).reshape(-1, 2).T
        snapshot = CoverageSnapshot(
            round=round,
            time_ns=int(self.env.now),
            cv=observed,
            distance_m=np.hypot(x_m, y_m),
            sojourn_s=self.sojourn_bound_s(x_m, y_m),
            snr_per_watt=self.channel.mean_snr_per_watt(observed),
            worst_rate_bps=self.channel.worst_case_rate_bps(observed),
            samples=np.array([self.samples[cv] for cv in observed], dtype=np.int64),
            agreements=[self.in_coverage[cv].agreement for cv in observed],
            success=self.history.success(observed.tolist()),
            **fields,
        )
        if self.broadcaster:
            snapshot = replace(snapshot, downlink_ns=self.broadcaster.worst_ns(snapshot))
        return observe(snapshot, self.constants)
