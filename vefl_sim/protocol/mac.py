"""The MAC scheduler: decides which CVs send on which pRBs with what power, for a burst of slots at a time."""

import warnings
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from simpy import Event

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.errors import RunFailed, VeflWarning
from vefl_sim.core.state import State
from vefl_sim.optimize.rat.allocate import AllocationStatus, needs_large
from vefl_sim.optimize.rat.burst import apply_grants, efficiency_of, fill_demand, report_backlogs, run_slots, skip_slot
from vefl_sim.optimize.rat.burst_state import (
    LAST_BIT,
    BurstChannel,
    BurstState,
    Feedback,
    Grants,
    MacConfig,
    Slot,
    SlotDemand,
    SlotLog,
    UplinkPattern,
    new_log,
)
from vefl_sim.optimize.rat.edf import Backlog, Scheduler, edf
from vefl_sim.optimize.rat.methods import RatMethod
from vefl_sim.optimize.rat.problem import RatAllocation, RatPolicy, RatProblem, Solution
from vefl_sim.protocol.control import AllocationDue, Control
from vefl_sim.protocol.uplink import Uplink, Upload
from vefl_sim.radio.access import IMMEDIATE, Access
from vefl_sim.radio.channel import Channel, DelayedCsi
from vefl_sim.radio.link import Link

_PAIRS_PER_BURST = 100_000  # (scheduled CV, pRB) pairs, at up to 4 µs each: stop signals are heard between bursts


@dataclass(frozen=True)
class Burst:
    """Consecutive slots decided in one call. When the next event occurs, all but the last of them are complete."""

    first_slot: int
    slots: int
    log: SlotLog
    uploads: Sequence[Upload]  # one per column of the log
    snr_per_watt: Floats  # of each CV, without fast fading
    fading: Floats  # fading gains of the slots; shape (slots, CVs, pRBs)
    feedback: Feedback | None = None  # None: the gNB knows the channel of each slot


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
    control: Control | None = None  # None: nobody steps through the run
    _efficiency: Floats = field(default_factory=lambda: np.zeros(3))  # Σ rate, Σ power of the round; β of the last one
    _round: int = 0

    def __post_init__(self) -> None:
        own = {"mac.scheduler": self.scheduler is not edf, "rat.method": not isinstance(self.policy, RatMethod)}
        if keys := " and ".join(key for key, is_own in own.items() if is_own):
            sentence = (
                f"With your own {keys}, slots run one by one in Python, about 0.3 ms each: a hundred times slower."
            )
            warnings.warn(sentence, VeflWarning, stacklevel=3)
        self._code = self.policy.code if isinstance(self.policy, RatMethod) else None  # None: a function in Python
        self.use(self.link)

    def use(self, link: Link) -> None:
        """Use this link from the next burst on."""
        self.link, method = link, -1 if self._code is None else int(self._code)
        nats_hz = link.bandwidth_hz / float(np.log(2))  # with it, rates in bit/s follow from natural logarithms
        self._config = MacConfig(method, self.slot_s, nats_hz, link.max_power_w, self.tradeoff, self.circuit_w)

    @property
    def unreported_slots(self) -> int:
        """Slots after which a CV has surely reported the bits of a lost grant; 0 if the gNB knows the channel."""
        return self.access.wait_slots if isinstance(self.channel, DelayedCsi) else 0

    def transmit(self, slot: int, uplink: Uplink, slots: int) -> Generator[Event, Any, Burst]:
        """Run up to `slots` slots from `slot` on; only the queues of the uploads that may send change during them."""
        uploads, cvs = uplink.uploads, uplink.cvs
        self._begin_round(max(upload.order.round for upload in uploads))
        is_asked = self.control is not None and self.control.stops_for is AllocationDue
        code = None if self.scheduler is not edf or is_asked else self._code
        pairs = min(len(uploads), self.link.prbs) * self.link.prbs
        longest = min(self.longest_burst, max(1, _PAIRS_PER_BURST // pairs))
        slots = 1 if code is None else min(slots, longest)
        channel = BurstChannel(slot, self.channel.mean_snr_per_watt(cvs), self.channel.fading_gains(slot, slots, cvs))
        state = BurstState(uplink.queues, self._efficiency, new_log(slots, len(uploads), self.link.prbs))
        feedback = None  # the gNB knows the channel of each slot
        if isinstance(self.channel, DelayedCsi):
            gain = self.channel.known_gains(slot, slots, cvs)
            feedback = Feedback(gain, self.access.report_slots, self.access.grant_slots, uplink.unreported)
        open_loop = self.link.open_loop
        prb_watts = open_loop.prb_watts(channel.snr_per_watt) if open_loop else None
        tdd = self.access.pattern
        pattern = UplinkPattern(tdd.shares(slot, slots), tdd.before, tdd.full)
        if code is not None:
            large = None if open_loop else needs_large(code, self.link.prbs)
            done = run_slots(large, self._config, channel, state, pattern, feedback, prb_watts)
        else:
            done = 1
            only = Slot(0, slot, pattern.share[0], channel.snr_per_watt, channel.fading[0])
            yield from self._run_slot(only, cvs, state, pattern, feedback, prb_watts)
        return Burst(slot, done, state.log, uploads, channel.snr_per_watt, channel.fading, feedback)

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

    def _run_slot(
        self,
        slot: Slot,
        cvs: Ints,
        state: BurstState,
        pattern: UplinkPattern,
        feedback: Feedback | None,
        prb_watts: Floats | None,
    ) -> Generator[Event, Any, None]:
        """Run one slot with a scheduler or a policy in Python; all else is computed as in `run_slots`."""
        known = state.log.bits_known[slot.row]
        report_backlogs(slot.number, state.queues, feedback, known)
        gain = slot.fading * slot.snr_per_watt[:, None] if feedback is None else feedback.gain[slot.row]
        rows = self._scheduled(slot, cvs, gain, state) if slot.share else np.empty(0, np.int64)
        if not len(rows):
            skip_slot(slot.row, state)
            return  # a scheduler may leave a slot idle
        count, prbs = len(rows), self.link.prbs
        demand = SlotDemand(np.empty((count, prbs)), np.empty(count), np.empty(count, np.int64), np.empty(count))
        fill_demand(slot, rows, int((known > 0).sum()), state, pattern, feedback, demand)
        problem = self._problem(slot, demand, cvs[rows], None if prb_watts is None else prb_watts[rows])
        if self.control and self.control.stops_for is AllocationDue:
            allocation = yield self.control.ask(AllocationDue(problem))
        else:
            allocation = self.policy(problem)
        require_valid(problem, allocation)
        status = AllocationStatus[allocation.status.upper()]
        grants = Grants(
            cv=rows,
            gain=problem.snr_per_watt,
            owner=allocation.owner.astype(np.int64),
            watts=allocation.power_w.astype(np.float64),
            rate_bps=allocation.rate_bps.astype(np.float64),
            weighted_rate=float(((self.tradeoff + problem.slot_s * problem.bits_left) * allocation.rate_bps).sum()),
            solution=Solution(float(allocation.objective), float(allocation.bound), status),
        )
        apply_grants(self._config, slot, grants, state, feedback)

    def _scheduled(self, slot: Slot, cvs: Ints, gain: Floats, state: BurstState) -> Ints:
        """Rows of the CVs that the scheduler selects for the slot, among those whose backlog is known; checked."""
        known = state.log.bits_known[slot.row]
        backlogged = np.flatnonzero(known > 0)
        if not backlogged.size:
            return backlogged
        full_power_snr = self.link.max_power_w * gain[backlogged].mean(axis=1)
        deadline_slot = state.queues["deadline_slot"][backlogged]
        backlog = Backlog(slot.number, cvs[backlogged], deadline_slot, known[backlogged], full_power_snr)
        rows = np.asarray(self.scheduler(backlog, self.link.prbs))
        distinct = set(rows.tolist()) if rows.ndim == 1 and (rows.dtype.kind in "iu" or not rows.size) else {None}
        if len(distinct) != rows.size or len(distinct) > self.link.prbs or not distinct <= {*range(len(backlogged))}:
            raise RunFailed("mac.scheduler must return row numbers of the backlog, each once, at most `limit` of them.")
        return backlogged[rows.astype(np.int64)]

    def _problem(self, slot: Slot, demand: SlotDemand, cvs: Ints, prb_watts: Floats | None) -> RatProblem:
        """The RAT sub-problem of the slot in SI units."""
        return RatProblem(
            snr_per_watt=demand.gain,
            max_power_w=np.full(len(demand.bits), self.link.max_power_w),
            bits_left=demand.bits,
            floor_bps=demand.bits / self.slot_s / demand.slots,
            mean_bps=demand.mean / self.slot_s,
            slot_s=self.slot_s * slot.share,
            bandwidth_hz=self.link.bandwidth_hz,
            tradeoff=self.tradeoff,
            efficiency=float(efficiency_of(self._efficiency)),
            prb_power_w=prb_watts,
            cv=cvs,
            slot=slot.number,
            round=self._round,
        )


def require_valid(problem: RatProblem, allocation: Any) -> None:
    """Raise RunFailed if a policy gives a pRB to two CVs (by shape), exceeds P_max, or claims a rate above capacity."""
    if not isinstance(allocation, RatAllocation) or allocation.status.upper() not in AllocationStatus.__members__:
        raise RunFailed('rat.method must return a RatAllocation; the status of a policy is "policy".')
    owner, power_w, rate_bps = allocation.owner, allocation.power_w, allocation.rate_bps
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
