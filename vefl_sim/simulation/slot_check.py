"""One slot of a burst recomputed from the definitions in plain NumPy: order of CVs, pRBs, powers, capacity, floors.

The MAC decides slots in compiled code. This file uses none of that code, only its inputs (channel, uploads) and its
grants.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats
from vefl_sim.optimize.rat.allocate import AllocationStatus
from vefl_sim.optimize.rat.burst_state import SlotLog
from vefl_sim.protocol.mac import Burst
from vefl_sim.radio.access import IMMEDIATE, Access
from vefl_sim.radio.link import Link

_TOLERANCE = 1e-9  # relative: sums in another order
_MET = 1e-8  # share of all floors that may be missed: ten times what the methods call met
_NO_RATE = 1e-2  # bit/s: less is rounding


_Law = tuple[str, NDArray[np.bool_], str, tuple[Any, ...]]
"""Name, which entries (CVs or pRBs) of the slot break it, a sentence, and its values: one number, or one per entry."""


@dataclass(frozen=True)
class SlotCheck:
    """The laws that the slots of a run must obey."""

    link: Link
    slot_s: float  # κ
    access: Access = IMMEDIATE
    edf: bool = True  # False: the scheduler is user-defined, and need not be EDF
    floors: bool = True  # False: the RAT policy is user-defined, and its statement on floors is not checked

    def broken(self, burst: Burst, index: int) -> Iterator[tuple[str, str]]:
        """(law, sentence) for every law that the slot breaks, and every CV or pRB that breaks it."""
        slot = _DecidedSlot(self, burst, index)
        laws = [*slot.laws_of_grants(), *slot.laws_of_powers(), *slot.laws_of_rates()]
        for name, is_broken, sentence, values in (*laws, *slot.laws_of_edf()) if self.edf else laws:
            for entry in np.flatnonzero(is_broken):
                yield name, sentence.format(*(np.broadcast_to(value, is_broken.shape)[entry] for value in values))


class _DecidedSlot:
    """A slot and its grants; arrays have one entry per eligible upload, in CV order."""

    def __init__(self, check: SlotCheck, burst: Burst, index: int) -> None:
        self.check, self.link, self.burst, self.index = check, check.link, burst, index
        self.number = burst.first_slot + index  # of the slot since the start of the run
        self.log = SlotLog(*(column[index] for column in burst.log))
        self.cv = np.array([f"CV {upload.cv}" for upload in burst.uploads])
        self.share = float(check.access.pattern.shares(self.number, 1)[0])  # of the symbols of a full uplink slot
        self.owns = np.arange(len(self.cv))[:, None] == self.log.owner  # I_{v,z}; shape (CVs, pRBs)
        self.owned = self.owns.sum(axis=1)
        self.served = self.owned > 0

    def laws_of_grants(self) -> Iterator[_Law]:
        """CVs are served from their first slot τ_v on and in uplink slots, with the pRBs booked for them (C7)."""
        cv, booked = self.cv, self.log.prbs
        first = np.array([upload.earliest_slot for upload in self.burst.uploads])
        early, downlink = self.served & (first > self.number), self.served & (self.share == 0)
        yield "the start of uploads", early, "{} is served, but may send from slot {} on.", (cv, first)
        yield "the TDD pattern", downlink, "{} is served in a slot without uplink.", (cv,)
        yield "C7", self.owned != booked, "{} owns {} pRBs, but {} are booked.", (cv, self.owned, booked)

    def laws_of_powers(self) -> Iterator[_Law]:
        """No power without an owner or below zero (C11), and at most P_max per CV, as booked (C12).

        With open-loop power control, a CV with n pRBs sends with min(p, P_max/n) on each.
        """
        cv, watts, owner, limit_w = self.cv, self.log.watts, self.log.owner, self.link.max_power_w
        stray = ~(watts >= 0) | (watts > 0) & (owner < 0)
        yield "C11", stray, "a pRB has power below zero, or power and no owner.", ()
        sent_w, booked_w = self.owns @ watts, self.log.power_w
        above = ~(sent_w <= limit_w * (1 + _TOLERANCE))
        yield "C12", above, "{} sends with {:.6g} W of {:.6g} W.", (cv, sent_w, limit_w)
        mean_w = self.share * sent_w
        other = ~(np.abs(mean_w - booked_w) <= limit_w * _TOLERANCE)
        yield "C12", other, "{} sends with {:.6g} W, but {:.6g} W are booked.", (cv, mean_w, booked_w)
        if self.link.open_loop:
            given_w = self.link.open_loop.prb_watts(self.burst.snr_per_watt)
            given_w = np.minimum(given_w, limit_w / np.maximum(1, self.owned))[owner]  # of the owner of each pRB
            other = (owner >= 0) & ~(np.abs(watts - given_w) <= _TOLERANCE * given_w)
            sentence = "{} sends with {:.6g} W on a pRB, not with {:.6g} W."
            yield "open-loop power", other, sentence, (cv[owner], watts, given_w)

    def laws_of_rates(self) -> Iterator[_Law]:
        """A rate is at most the capacity of the CV's pRBs that the gNB knows, and sends at most the bits left.

        A grant is lost as a whole if it is above the capacity of the slot, and only then.
        """
        cv, rate_bps, feedback = self.cv, self.log.rate_bps, self.burst.feedback
        capacity_bps = self._capacity_bps(self.burst.snr_per_watt[:, None] * self.burst.fading[self.index])
        known_bps = capacity_bps if feedback is None else self._capacity_bps(feedback.gain[self.index])
        limits = {"its pRBs carry": known_bps, "it has left to send": self.log.bits_left / self.check.slot_s}
        for reason, limit_bps in limits.items():
            above = ~(rate_bps <= limit_bps * (1 + _TOLERANCE) + _NO_RATE)
            sentence = "{} has {:.6g} bit/s, and {:.6g} is all that {}."
            yield "the capacity", above, sentence, (cv, rate_bps, limit_bps, reason)
        above = rate_bps > capacity_bps * (1 + _TOLERANCE)
        surely = np.abs(rate_bps - capacity_bps) > 1e-6 * capacity_bps + _NO_RATE  # not a matter of rounding
        wrong, verb = surely & (above != (self.log.bits_lost > 0)), np.where(above, "arrives", "is lost")
        yield "outage", wrong, "a grant of {:.6g} bit/s to {} {} at {:.6g}.", (rate_bps, cv, verb, capacity_bps)

    def _capacity_bps(self, gain: Floats) -> Floats:
        """Σ ω(1−υ)·log₂(1 + P·g) over the pRBs of each CV, mean over the slot."""
        watts = np.maximum(self.log.watts, 0)  # negative powers are reported as C11
        capacity: Floats = self.share * (self.owns * self.link.rate_bps(watts * gain)).sum(axis=1)
        return capacity

    def laws_of_edf(self) -> Iterator[_Law]:
        """Only CVs that Algorithm 3 schedules are served, and they get their floors if the method calls them feasible.

        Algorithm 3: the Z earliest deadlines, ties to the larger backlog, then to the smaller number. Floor
        (UlReqTxBits): the bits left over the time of the slots in which the CV can expect to be scheduled.
        """
        cv, rate_bps, uploads, prbs = self.cv, self.log.rate_bps, self.burst.uploads, self.link.prbs
        deadline, bits = np.array([upload.order.deadline_slot for upload in uploads]), self.log.bits_known
        backlogged = np.flatnonzero(bits > 0).tolist()
        scheduled = sorted(backlogged, key=lambda v: (deadline[v], -bits[v], uploads[v].cv))[:prbs]
        is_scheduled = np.isin(np.arange(len(cv)), scheduled)
        sentence = "{} is served, though {} others come before it."
        yield "the order of deadlines", self.served & ~is_scheduled, sentence, (cv, len(scheduled))
        if self.check.floors and self.log.outcome in (AllocationStatus.OPTIMAL, AllocationStatus.GAP):
            slots = self.check.access.pattern.slots_between(self.number, deadline)
            slots = slots if len(backlogged) <= prbs else slots * prbs // len(backlogged)
            floor_bps = is_scheduled * self.share * bits / self.check.slot_s / np.maximum(1, slots)
            missed_bps = np.maximum(floor_bps - rate_bps, 0)
            worst = (np.arange(len(cv)) == missed_bps.argmax()) & ~(missed_bps.sum() <= _MET * floor_bps.sum())
            yield "a rate floor", worst, "{} needs {:.6g} bit/s and has {:.6g}.", (cv, floor_bps, rate_bps)
