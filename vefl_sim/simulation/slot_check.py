"""One slot of a burst recomputed from the definitions in plain NumPy: order of CVs, pRBs, powers, capacity, floors.

The MAC decides slots in compiled code. This file uses none of that code, only its inputs (channel, uploads) and its
grants.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats
from vefl_sim.optimize.rat.allocate import AllocationStatus
from vefl_sim.protocol.mac import Burst
from vefl_sim.radio.access import IMMEDIATE, Access
from vefl_sim.radio.link import Link

Broken = Iterator[tuple[str, str]]
_TOLERANCE = 1e-9  # relative: sums in another order
_MET = 1e-8  # share of all floors that may be missed: ten times what the methods call met
_NO_RATE = 1e-2  # bit/s: less is rounding


@dataclass(frozen=True)
class SlotCheck:
    """The laws that the slots of a run must obey."""

    link: Link
    slot_s: float  # κ
    access: Access = IMMEDIATE
    edf: bool = True  # False: the scheduler is user-defined, and need not be EDF
    floors: bool = True  # False: the RAT policy is user-defined, and its statement on floors is not checked

    def broken(self, burst: Burst, index: int) -> Broken:
        """(law, sentence) for every law that the slot breaks."""
        slot = Slot(self.link, self.slot_s, burst, index, self.access)
        yield from slot.early()
        yield from slot.outside_uplink()
        yield from slot.shared()
        yield from slot.overpowered()
        yield from slot.other_powers()
        yield from slot.overloaded()
        yield from slot.wrongly_lost()
        if self.edf:
            yield from slot.out_of_order()
        if self.edf and self.floors:
            yield from slot.below_floors()


@dataclass(frozen=True)
class Slot:
    """A slot and its grants; arrays have one entry per eligible upload, in CV order."""

    link: Link
    slot_s: float
    burst: Burst
    index: int
    access: Access = IMMEDIATE

    @cached_property
    def share(self) -> float:
        """Uplink symbols of the slot over those of a full uplink slot."""
        return float(self.access.pattern.shares(self.number, 1)[0])

    @property
    def bits_known(self) -> Floats:
        """The backlogs with which the gNB has decided: without lost bits that are not reported yet."""
        known: Floats = self.burst.log.bits_known[self.index]
        return known

    @property
    def gain(self) -> Floats:
        """SNR per watt of the slot; shape (CVs, pRBs)."""
        gain: Floats = self.burst.queues.snr_per_watt[:, None] * self.burst.fading[self.index]
        return gain

    def capacity_bps(self, gain: Floats) -> Floats:
        """Σ ω(1−υ)·log₂(1 + P·g) over the pRBs of each CV, mean over the slot."""
        watts = np.maximum(self.burst.log.watts[self.index], 0)  # negative powers are reported as C11
        capacity: Floats = self.share * (self.owns * self.link.rate_bps(watts * gain)).sum(axis=1)
        return capacity

    @property
    def number(self) -> int:
        """Number of the slot since the start of the run."""
        return self.burst.first_slot + self.index

    @property
    def bits_left(self) -> Floats:
        """Q_v at the start of the slot."""
        left: Floats = self.burst.log.bits_left[self.index]
        return left

    @property
    def rate_bps(self) -> Floats:
        """Booked rates, one per upload."""
        rate: Floats = self.burst.log.rate_bps[self.index]
        return rate

    @cached_property
    def owns(self) -> NDArray[np.bool_]:
        """I_{v,z}: whether CV v owns pRB z; shape (CVs, pRBs)."""
        owns: NDArray[np.bool_] = np.arange(len(self.bits_left))[:, None] == self.burst.log.owner[self.index]
        return owns

    @cached_property
    def served(self) -> list[int]:
        """Rows of the CVs that own a pRB."""
        return np.flatnonzero(self.owns.any(axis=1)).tolist()

    @cached_property
    def scheduled(self) -> list[int]:
        """Algorithm 3: the Z earliest deadlines, ties to the larger backlog, then to the smaller number."""
        uploads, left = self.burst.uploads, self.bits_known.tolist()
        rows = (v for v in range(len(left)) if left[v] > 0)
        order = sorted(rows, key=lambda v: (uploads[v].order.deadline_slot, -left[v], uploads[v].cv))
        return order[: self.link.prbs]

    def early(self) -> Broken:
        """No CV is served before its first slot τ_v."""
        for v in self.served:
            if self.burst.uploads[v].earliest_slot > self.number:
                first = self.burst.uploads[v].earliest_slot
                yield "the start of uploads", f"{self._name(v)} is served, but may send from slot {first} on."

    def outside_uplink(self) -> Broken:
        """No CV is served in a downlink slot."""
        if self.served and not self.share:
            yield "the TDD pattern", f"{self._name(self.served[0])} is served in a slot without uplink."

    def shared(self) -> Broken:
        """C7: each pRB has one owner, and the number booked for a CV is the number it owns."""
        owned = self.owns.sum(axis=1)
        for v in np.flatnonzero(owned != self.burst.log.prbs[self.index]).tolist():
            booked = int(self.burst.log.prbs[self.index, v])
            yield "C7", f"{self._name(v)} owns {owned[v]} pRBs, but {booked} are booked."

    def overpowered(self) -> Broken:
        """C11 and C12: no power without an owner or below zero, and at most P_max per CV, as booked."""
        watts, limit_w = self.burst.log.watts[self.index], self.link.max_power_w
        if not np.all(watts >= 0) or np.any(watts[self.burst.log.owner[self.index] < 0]):
            yield "C11", "a pRB has power below zero, or power and no owner."
        spent_w, booked_w = self.owns @ watts, self.burst.log.power_w[self.index]
        mean_w = self.share * spent_w
        for v in np.flatnonzero(~(spent_w <= limit_w * (1 + _TOLERANCE))).tolist():
            yield "C12", f"{self._name(v)} sends with {spent_w[v]:.6g} W of {limit_w:.6g} W."
        for v in np.flatnonzero(~(np.abs(mean_w - booked_w) <= limit_w * _TOLERANCE)).tolist():
            yield "C12", f"{self._name(v)} sends with {mean_w[v]:.6g} W, but {booked_w[v]:.6g} W are booked."

    def other_powers(self) -> Broken:
        """With open-loop power control, a CV with n pRBs sends with min(p, P_max/n) on each."""
        if self.link.open_loop is None:
            return
        given_w = self.link.open_loop.prb_watts(self.burst.queues.snr_per_watt)
        given_w = np.minimum(given_w, self.link.max_power_w / np.maximum(1, self.owns.sum(axis=1)))
        watts, owner = self.burst.log.watts[self.index], self.burst.log.owner[self.index]
        for prb in np.flatnonzero(owner >= 0).tolist():
            v = int(owner[prb])
            if not abs(watts[prb] - given_w[v]) <= _TOLERANCE * given_w[v]:
                sentence = f"{self._name(v)} sends with {watts[prb]:.6g} W on a pRB, not with {given_w[v]:.6g} W."
                yield "open-loop power", sentence

    def overloaded(self) -> Broken:
        """A rate is at most the capacity of the CV's pRBs that the gNB knows, and sends at most the bits left."""
        knowledge = self.burst.knowledge
        capacity_bps = self.capacity_bps(self.gain if knowledge is None else knowledge.gain[self.index])
        limits = {"its pRBs carry": capacity_bps, "it has left to send": self.bits_left / self.slot_s}
        for reason, limit_bps in limits.items():
            for v in np.flatnonzero(~(self.rate_bps <= limit_bps * (1 + _TOLERANCE) + _NO_RATE)).tolist():
                sentence = (
                    f"{self._name(v)} has {self.rate_bps[v]:.6g} bit/s, and {limit_bps[v]:.6g} is all that {reason}."
                )
                yield "the capacity", sentence

    def wrongly_lost(self) -> Broken:
        """A grant is lost as a whole if it is above the capacity of the slot, and only then."""
        lost_bits, capacity_bps = self.burst.log.bits_lost[self.index], self.capacity_bps(self.gain)
        above = self.rate_bps > capacity_bps * (1 + _TOLERANCE)
        surely = np.abs(self.rate_bps - capacity_bps) > 1e-6 * capacity_bps + _NO_RATE  # not a matter of rounding
        for v in np.flatnonzero(surely & (above != (lost_bits > 0))).tolist():
            word = "arrives" if above[v] else "is lost"
            sentence = f"a grant of {self.rate_bps[v]:.6g} bit/s to {self._name(v)} {word} at {capacity_bps[v]:.6g}."
            yield "outage", sentence

    def out_of_order(self) -> Broken:
        """Only CVs that Algorithm 3 schedules are served."""
        for v in sorted({*self.served} - {*self.scheduled}):
            before = len(self.scheduled)
            yield "the order of deadlines", f"{self._name(v)} is served, though {before} others come before it."

    def below_floors(self) -> Broken:
        """All scheduled CVs get their floors (UlReqTxBits) if the method reported the floors as feasible."""
        if self.burst.log.outcome[self.index] not in (AllocationStatus.OPTIMAL, AllocationStatus.GAP):
            return
        floor_bps = np.array([self._floor_bps(v) for v in self.scheduled])
        missed_bps = np.maximum(floor_bps - self.rate_bps[self.scheduled], 0)
        if not missed_bps.sum() <= _MET * floor_bps.sum():
            worst = int(missed_bps.argmax())
            v, rate_bps = self.scheduled[worst], self.rate_bps[self.scheduled[worst]]
            yield "a rate floor", f"{self._name(v)} needs {floor_bps[worst]:.6g} bit/s and has {rate_bps:.6g}."

    def _floor_bps(self, v: int) -> float:
        """Bits left over the time of the slots before the deadline in which the CV can expect to be scheduled."""
        pattern, backlogged = self.access.pattern, int((self.bits_known > 0).sum())
        slots_left = int(pattern.slots_between(self.number, self.burst.uploads[v].order.deadline_slot))
        expected = slots_left if backlogged <= self.link.prbs else slots_left * self.link.prbs // backlogged
        return self.share * float(self.bits_known[v]) / self.slot_s / max(1, expected)

    def _name(self, v: int) -> str:
        return f"CV {self.burst.uploads[v].cv}"
