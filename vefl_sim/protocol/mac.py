"""The MAC scheduler: the uploads of a slot in, grants out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vefl_sim.errors import RunFailed
from vefl_sim.optimize.edf import Backlog, Scheduler
from vefl_sim.optimize.rat import RatPolicy, RatProblem
from vefl_sim.protocol.uplink import Upload
from vefl_sim.radio.channel import Channel
from vefl_sim.radio.link import Link


@dataclass(frozen=True)
class Grant:
    """What one CV does in one slot."""

    upload: Upload
    prbs: int
    power_w: float  # over all its pRBs
    rate_bps: float
    snr: float  # received, linear, mean over its pRBs


@dataclass(frozen=True)
class MacScheduler:
    """Schedules a slot (Algorithm 3) and allocates it (the RAT sub-problem)."""

    link: Link
    channel: Channel
    scheduler: Scheduler
    policy: RatPolicy
    slot_s: float

    def grants(self, slot: int, uploads: Sequence[Upload]) -> list[Grant]:
        """Grants for the CVs scheduled in this slot."""
        cvs = np.array([upload.cv for upload in uploads])
        snr_per_watt = self.channel.snr_per_watt(slot, cvs)
        rows = self._schedule(slot, uploads, cvs, snr_per_watt)
        problem = RatProblem(
            snr_per_watt=snr_per_watt[rows],
            max_power_w=np.full(len(rows), self.link.max_power_w),
            bits_left=np.array([uploads[row].account.bits_left for row in rows]),
            slot_s=self.slot_s,
            bandwidth_hz=self.link.bandwidth_hz,
        )
        return self._allocate(problem, [uploads[row] for row in rows])

    def _schedule(
        self, slot: int, uploads: Sequence[Upload], cvs: NDArray[np.int64], snr_per_watt: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        backlog = Backlog(
            slot=slot,
            cv=cvs,
            deadline_slot=np.array([upload.order.deadline_slot for upload in uploads]),
            bits_left=np.array([upload.account.bits_left for upload in uploads]),
            snr=self.link.max_power_w * snr_per_watt.mean(axis=1),
        )
        rows = np.asarray(self.scheduler(backlog, self.link.prbs))
        if len(rows) > self.link.prbs or len(set(rows.tolist())) != len(rows):
            raise RunFailed("mac.scheduler returned a CV twice or more CVs than there are pRBs.")
        return rows

    def _allocate(self, problem: RatProblem, uploads: Sequence[Upload]) -> list[Grant]:
        allocation = self.policy(problem)
        grants = []
        for row, upload in enumerate(uploads):
            mine = np.flatnonzero(allocation.owner == row)
            power_w = allocation.power_w[mine]
            if len(mine):
                snr = float((power_w * problem.snr_per_watt[row, mine]).mean())
                grants.append(Grant(upload, len(mine), float(power_w.sum()), float(allocation.rate_bps[row]), snr))
        return grants
