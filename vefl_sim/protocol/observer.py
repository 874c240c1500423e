"""What the edge server sees when it looks at its coverage: the CVs, where they are, and what it knows of each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.protocol.coverage import CoverageProcess
from vefl_sim.protocol.events import NanosecondEnvironment
from vefl_sim.radio.channel import Channel
from vefl_sim.schemes.history import SuccessHistory
from vefl_sim.schemes.observation import CoverageSnapshot, Observation, RoundConstants, observe


@dataclass(frozen=True)
class Observer:
    """Takes a snapshot of the CVs in coverage, and adds the worst-case upload times that plans count with."""

    env: NanosecondEnvironment
    coverage: CoverageProcess
    channel: Channel
    history: SuccessHistory
    constants: RoundConstants
    samples: Mapping[int, int]  # CV -> D_v, the number of samples it holds
    sojourn_bound_s: Callable[[Floats, Floats], Floats]  # of positions x_m, y_m

    def __call__(self, round: int, cvs: Sequence[int] | None = None, **more: Any) -> Observation:
        """Observe all CVs in coverage, or only `cvs` (ascending); `more` are further fields of the snapshot."""
        in_coverage = self.coverage.in_coverage
        seen = np.array(sorted(in_coverage) if cvs is None else cvs, dtype=np.int64)
        x_m, y_m = np.array([self.coverage.position_m(cv) for cv in seen]).reshape(-1, 2).T
        snapshot = CoverageSnapshot(
            round=round,
            time_ns=int(self.env.now),
            cv=seen,
            distance_m=np.hypot(x_m, y_m),
            sojourn_s=self.sojourn_bound_s(x_m, y_m),
            snr_per_watt=self.channel.mean_snr_per_watt(seen),
            samples=np.array([self.samples[cv] for cv in seen], dtype=np.int64),
            agreements=[in_coverage[cv].agreement for cv in seen],
            success=self.history.success(seen.tolist()),
            **more,
        )
        return observe(snapshot, self.constants)
