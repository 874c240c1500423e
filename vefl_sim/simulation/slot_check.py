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
    edf: bool = True  # False: the scheduler is user-defined, and need not be EDF
    floors: bool = True  # False: the RAT policy is user-defined, and its statement on floors is not checked

    def broken(self, burst: Burst, index: int) -> Broken:
        """(law, sentence) for every law that the slot breaks."""
        slot = Slot(self.link, self.slot_s, burst, index)
        yield from slot.early()
        yield from slot.shared()
        yield from slot.overpowered()
        yield from slot.overloaded()
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
        uploads, left = self.burst.uploads, self.bits_left.tolist()
        order = sorted(range(len(left)), key=lambda v: (uploads[v].order.deadline_slot, -left[v], uploads[v].cv))
        return order[: self.link.prbs]

    def early(self) -> Broken:
        """No CV is served before its first slot τ_v."""
        for v in self.served:
            if self.burst.uploads[v].earliest_slot > self.number:
                first = self.burst.uploads[v].earliest_slot
                yield "the start of uploads", f"{self._name(v)} is served, but may send from slot {first} on."

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
        for v in np.flatnonzero(~(spent_w <= limit_w * (1 + _TOLERANCE))).tolist():
            yield "C12", f"{self._name(v)} sends with {spent_w[v]:.6g} W of {limit_w:.6g} W."
        for v in np.flatnonzero(~(np.abs(spent_w - booked_w) <= limit_w * _TOLERANCE)).tolist():
            yield "C12", f"{self._name(v)} sends with {spent_w[v]:.6g} W, but {booked_w[v]:.6g} W are booked."

    def overloaded(self) -> Broken:
        """A rate is at most Σ ω(1−υ)·log₂(1 + P·g) over the CV's pRBs, and sends at most the bits left."""
        gain = self.burst.queues.snr_per_watt[:, None] * self.burst.fading[self.index]
        watts = np.maximum(self.burst.log.watts[self.index], 0)  # negative powers are reported as C11
        capacity_bps = (self.owns * self.link.rate_bps(watts * gain)).sum(axis=1)
        limits = {"its pRBs carry": capacity_bps, "it has left to send": self.bits_left / self.slot_s}
        for reason, limit_bps in limits.items():
            for v in np.flatnonzero(~(self.rate_bps <= limit_bps * (1 + _TOLERANCE) + _NO_RATE)).tolist():
                sentence = (
                    f"{self._name(v)} has {self.rate_bps[v]:.6g} bit/s, and {limit_bps[v]:.6g} is all that {reason}."
                )
                yield "the capacity", sentence

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
        slots_left, backlogged = self.burst.uploads[v].order.deadline_slot - self.number, len(self.bits_left)
        expected = slots_left if backlogged <= self.link.prbs else slots_left * self.link.prbs // backlogged
        return float(self.bits_left[v]) / self.slot_s / max(1, expected)

    def _name(self, v: int) -> str:
        return f"CV {self.burst.uploads[v].cv}"
