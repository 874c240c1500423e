"""The MAC scheduler: decides which CVs send on which pRBs with what power, for a burst of slots at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import RunFailed
from vefl_sim.core.state import State
from vefl_sim.optimize.rat.allocate import AllocationStatus, Found, needs_large
from vefl_sim.optimize.rat.books import (
    LAST_BIT,
    Air,
    Books,
    CellConstants,
    Grants,
    Knowledge,
    Log,
    Moment,
    Queues,
    idle,
    know_backlogs,
    new_log,
    settle,
)
from vefl_sim.optimize.rat.burst import run_slots, slots_to_count_on, uplink_slots
from vefl_sim.optimize.rat.edf import Backlog, Scheduler, edf
from vefl_sim.optimize.rat.methods import AllocationMethod, RatMethod
from vefl_sim.optimize.rat.problem import RatAllocation, RatPolicy, RatProblem
from vefl_sim.protocol.uplink import Upload
from vefl_sim.radio.access import IMMEDIATE, Access
from vefl_sim.radio.channel import Channel
from vefl_sim.radio.csi import DelayedCsi
from vefl_sim.radio.link import Link

_PAIRS_PER_BURST = 100_000  # (scheduled CV, pRB) pairs, at up to 4 µs each


@dataclass(frozen=True)
class Burst:
    """Consecutive slots decided in one call. When the next event occurs, all but the last of them are complete."""

    first_slot: int
    slots: int
    queues: Queues  # state after the burst, except for the bits of its last slot
    last_bits: Floats  # bits sent in the last slot, by CV
    log: Log
    uploads: Sequence[Upload]
    fading: Floats  # fading gains of the slots; shape (slots, CVs, pRBs)
    knowledge: Knowledge | None = None  # after the burst; None: the gNB knows the channel of each slot
    prb_watts: Floats | None = None  # transmit power of each CV on a pRB; None: the gNB chooses powers


@dataclass
class MacScheduler:
    """Selects the CVs of each slot (Algorithm 3) and allocates pRBs and power to them (the RAT sub-problem)."""

    link: Link
    channel: Channel
    scheduler: Scheduler
    policy: RatPolicy  # a built-in RatMethod, or a user-defined function
    slot_s: float
    tradeoff: float  # C
    circuit_w: float = 0.0
    longest_burst: int = 256
    access: Access = IMMEDIATE
    _efficiency: Floats = field(default_factory=lambda: np.zeros(3))  # Σ rate, Σ power of the round; β of the last one
    _round: int = 0

    def transmit(self, slot: int, uploads: Sequence[Upload], slots: int) -> Burst:
        """Run up to `slots` slots from `slot` on; only the queues of these uploads change during them."""
        self._begin_round(max(upload.order.round for upload in uploads))
        code = self._code if self.scheduler is edf else None
        slots = 1 if code is None else min(slots, self._longest_burst(len(uploads)))
        cvs = np.array([upload.cv for upload in uploads])
        fading = self.channel.fading_gains(slot, slots, cvs)
        log = new_log(slots, len(uploads), self.link.prbs)
        books = Books(self._queues(uploads), self._efficiency, log, np.zeros(len(uploads)))
        knowledge = self._knowledge(slot, slots, uploads, cvs)
        open_loop = self.link.open_loop
        prb_watts = open_loop.prb_watts(books.queues.snr_per_watt) if open_loop else None
        air = Air(self.access.pattern.shares(slot, slots), self.access.pattern.before, self.access.pattern.full)
        if code is not None:
            large = None if open_loop else needs_large(code, self.link.prbs)
            done = run_slots(large, self._cell, slot, fading, books, air, knowledge, prb_watts)
        else:
            done = 1
            self._tick(Moment(slot, air.share[0], fading[0]), cvs, books, knowledge, prb_watts)
        return Burst(slot, done, books.queues, books.last_bits, log, uploads, fading, knowledge, prb_watts)

    def _knowledge(self, slot: int, slots: int, uploads: Sequence[Upload], cvs: NDArray[np.int64]) -> Knowledge | None:
        """What the gNB knows of the channel and of the backlogs; None if it knows the channel of each slot."""
        if not isinstance(self.channel, DelayedCsi):
            return None
        window = self.access.wait_slots
        unreported = [upload.unreported if upload.unreported.size else np.zeros(window) for upload in uploads]
        return Knowledge(
            gain=self.channel.known_gains(slot, slots, cvs),
            report_slots=self.access.report_slots,
            grant_slots=self.access.grant_slots,
            lost_slots=np.array([upload.lost_slots for upload in uploads]),
            lost_bits=np.array([upload.account.bits_lost for upload in uploads]),
            lost_j=np.array([upload.lost_j for upload in uploads]),
            unreported=np.array(unreported).reshape(len(uploads), window),
        )

    def _longest_burst(self, cvs: int) -> int:
        """Slots per compiled call: stop signals are heard between calls, so a call must take less than a second."""
        pairs = min(cvs, self.link.prbs) * self.link.prbs
        return min(self.longest_burst, max(1, _PAIRS_PER_BURST // pairs))

    def _begin_round(self, round: int) -> None:
        """β(k, t) starts each round at the last value of the round before; in the first round at 0, as in the paper."""
        if round > self._round:
            total_rate, total_power, _ = self._efficiency
            if total_power > 0:
                self._efficiency[2] = total_rate / total_power
            self._efficiency[:2] = 0.0
            self._round = round

    def state(self) -> State:
        """The sums that β(k, t) is computed from."""
        return {"efficiency": self._efficiency.tolist(), "round": self._round}

    def restore(self, state: State) -> None:
        """Restore the sums of β(k, t) from a checkpoint."""
        self._efficiency[:], self._round = state["efficiency"], state["round"]

    @property
    def _cell(self) -> CellConstants:
        """Constants of the cell for the compiled kernel."""
        method = -1 if self._code is None else int(self._code)
        return CellConstants(method, self.slot_s, self._nats_hz, self.link.max_power_w, self.tradeoff, self.circuit_w)

    @property
    def _code(self) -> AllocationMethod | None:
        """Code of a compiled method; None if the policy is a function in Python."""
        return self.policy.code if isinstance(self.policy, RatMethod) else None

    @property
    def _nats_hz(self) -> float:
        """Bandwidth of a pRB over ln 2, so that rates in bit/s follow from natural logarithms."""
        return self.link.bandwidth_hz / float(np.log(2))

    def _queues(self, uploads: Sequence[Upload]) -> Queues:
        """The uploads as arrays, one entry per CV."""
        cvs = np.array([upload.cv for upload in uploads])
        return Queues(
            snr_per_watt=self.channel.mean_snr_per_watt(cvs),
            earliest_slot=np.array([upload.earliest_slot for upload in uploads]),
            deadline_slot=np.array([upload.order.deadline_slot for upload in uploads]),
            bits_left=np.array([upload.account.bits_left for upload in uploads]),
            bits_drained=np.array([upload.account.bits_drained for upload in uploads]),
            transmit_j=np.array([upload.account.transmit_j for upload in uploads]),
            slots=np.array([upload.slots for upload in uploads]),
            snr_sum=np.array([upload.snr_sum for upload in uploads]),
        )

    def _tick(
        self,
        moment: Moment,
        cvs: NDArray[np.int64],
        books: Books,
        knowledge: Knowledge | None,
        prb_watts: Floats | None,
    ) -> None:
        """Run one slot with a scheduler or a policy in Python; it is settled as in `run_slots`."""
        know_backlogs(moment.slot, books.queues, knowledge, books.log.bits_known[0])
        gain = moment.fading * books.queues.snr_per_watt[:, None] if knowledge is None else knowledge.gain[0]
        rows = self._schedule(moment.slot, cvs, gain, books) if moment.share else np.empty(0, np.int64)
        if not len(rows):
            idle(0, books)
            return  # a scheduler may leave a slot idle
        problem = self._problem(moment, rows, gain[rows], books, prb_watts)
        allocation = self.policy(problem)
        if not isinstance(allocation, RatAllocation) or allocation.status.upper() not in AllocationStatus.__members__:
            raise RunFailed('rat.method must return a RatAllocation; the status of a policy is "policy".')
        _check(problem, allocation.owner, allocation.power_w, allocation.rate_bps)
        found = Found(float(allocation.objective), float(allocation.bound), AllocationStatus[allocation.status.upper()])
        grants = Grants(
            cv=rows,
            gain=problem.snr_per_watt,
            owner=allocation.owner.astype(np.int64),
            watts=allocation.power_w.astype(np.float64),
            rate_bps=allocation.rate_bps.astype(np.float64),
            worth=float(((self.tradeoff + problem.slot_s * problem.bits_left) * allocation.rate_bps).sum()),
            found=found,
        )
        settle(self._cell, 0, grants, books, moment, knowledge)

    def _schedule(self, slot: int, cvs: NDArray[np.int64], gain: Floats, books: Books) -> NDArray[np.int64]:
        """Rows of the CVs that the scheduler selects for the slot, among those whose backlog is known; checked."""
        known = np.flatnonzero(books.log.bits_known[0] > 0)
        if not known.size:
            return known
        return known[self._scheduled(slot, cvs[known], gain[known], books, known)]

    def _scheduled(
        self, slot: int, cvs: NDArray[np.int64], gain: Floats, books: Books, known: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        full_power_snr = self.link.max_power_w * gain.mean(axis=1)
        backlog = Backlog(slot, cvs, books.queues.deadline_slot[known], books.log.bits_known[0, known], full_power_snr)
        rows = np.asarray(self.scheduler(backlog, self.link.prbs))
        distinct = set(rows.tolist()) if rows.ndim == 1 and (rows.dtype.kind in "iu" or not rows.size) else {None}
        if len(distinct) != rows.size or len(distinct) > self.link.prbs or not distinct <= set(range(len(cvs))):
            raise RunFailed("mac.scheduler must return row numbers of the backlog, each once, at most `limit` of them.")
        return rows.astype(np.int64)

    def _problem(
        self, moment: Moment, rows: NDArray[np.int64], gain: Floats, books: Books, prb_watts: Floats | None
    ) -> RatProblem:
        """The RAT sub-problem of the slot for the selected CVs."""
        queues, known, pattern = books.queues, books.log.bits_known[0], self.access.pattern
        left = known[rows]
        backlogged, prbs = int((known > 0).sum()), self.link.prbs
        slots_left = [uplink_slots(pattern.before, pattern.full, moment.slot, queues.deadline_slot[v]) for v in rows]
        usable_slots = [slots_to_count_on(slots, backlogged, prbs) for slots in slots_left]
        waited = np.maximum(1, moment.slot - queues.earliest_slot[rows])
        total_rate, total_power, last_round = self._efficiency
        return RatProblem(
            snr_per_watt=gain,
            max_power_w=np.full(len(rows), self.link.max_power_w),
            bits_left=left,
            floor_bps=left / self.slot_s / np.array(usable_slots),
            mean_bps=queues.bits_drained[rows] / waited / self.slot_s,
            slot_s=self.slot_s * moment.share,
            bandwidth_hz=self.link.bandwidth_hz,
            tradeoff=self.tradeoff,
            efficiency=total_rate / total_power if total_power > 0 else last_round,
            prb_power_w=None if prb_watts is None else prb_watts[rows],
        )


def _check(problem: RatProblem, owner: NDArray[np.int64], power_w: Floats, rate_bps: Floats) -> None:
    """Raise RunFailed if a policy gives a pRB to two CVs (by shape), exceeds P_max, or claims a rate above capacity."""
    cvs, prbs = problem.snr_per_watt.shape
    if owner.shape != (prbs,) or power_w.shape != (prbs,) or rate_bps.shape != (cvs,):
        raise RunFailed("rat.method must return owner and power_w per pRB and rate_bps per CV.")
    if owner.min() < -1 or owner.max() >= cvs or not np.all(power_w >= 0) or np.any(power_w[owner < 0]):
        raise RunFailed("rat.method returned an unknown owner, a negative power, or power on a pRB without an owner.")
    if not np.all((rate_bps >= 0) & np.isfinite(rate_bps)):
        raise RunFailed("rat.method returned a rate that is negative or not a number.")
    spent = np.bincount(owner[owner >= 0], power_w[owner >= 0], cvs)
    if np.any(spent > problem.max_power_w * (1 + 1e-9)):
        raise RunFailed("rat.method gave a CV more power than its P_max.")
    if problem.prb_power_w is not None:
        owned = np.maximum(1, np.bincount(owner[owner >= 0], minlength=cvs))
        given = np.minimum(problem.prb_power_w, problem.max_power_w / owned)
        if not np.allclose(power_w[owner >= 0], given[owner[owner >= 0]], rtol=1e-9, atol=0):
            raise RunFailed('rat.method chose other powers than min(prb_power_w, P_max/n): radio.power = "open-loop".')
    snr = power_w * problem.snr_per_watt[np.maximum(owner, 0), np.arange(prbs)]
    possible = np.bincount(owner[owner >= 0], (problem.bandwidth_hz * np.log1p(snr) / np.log(2))[owner >= 0], cvs)
    if np.any(rate_bps > possible * (1 + 1e-9) + LAST_BIT / problem.slot_s):
        raise RunFailed("rat.method returned a rate that its powers cannot carry.")
