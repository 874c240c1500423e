"""The audit of a run, done while it runs: constraints C1–C6 for every plan, C7–C12 for every slot.

One slot in EVERY is recomputed from the definitions in plain NumPy (DecidedSlot), because the log of a slot cannot show
whether a rate is within the capacity, a floor is met or the order of deadlines is kept. A violation by a built-in
scheme or by a slot ends the run. Uploads that take longer, cost more or end later than the planned worst case are not
violations: they are overruns, which are counted and reported.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats
from vefl_sim.core.clock import SlotGrid
from vefl_sim.core.errors import AuditFailed
from vefl_sim.core.state import SavedAttributes
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import is_part
from vefl_sim.optimize.rat.allocate import AllocationStatus
from vefl_sim.optimize.rat.burst_state import SlotLog
from vefl_sim.optimize.vefl.problem import VeflProblem
from vefl_sim.protocol.ledger import Ledger
from vefl_sim.protocol.mac import Burst
from vefl_sim.protocol.messages import OVERRUNS, Decision, RoundReport, TrainOrder
from vefl_sim.radio.access import IMMEDIATE, Access
from vefl_sim.radio.link import Link
from vefl_sim.schemes.observation import sojourn_ns

_TOLERANCE = 1e-9  # relative: sums in another order
_MET = 1e-8  # share of all floors that may be missed: ten times what the methods call met
_NO_RATE = 1e-2  # bit/s: less is rounding
EVERY = 127  # one slot in so many is recomputed; prime, so that the position within a burst varies


@dataclass
class Audit(SavedAttributes):
    """Checks every plan and every slot of a run, and counts them."""

    link: Link
    slot_s: float  # κ
    binding: bool = True  # False: the scheme is user-defined, so violations of C1–C6 are counted and do not end the run
    access: Access = IMMEDIATE
    edf: bool = True  # False: the scheduler is user-defined, and need not be EDF
    floors: bool = True  # False: the RAT policy is user-defined, and its statement on floors is not checked
    plans: int = 0
    slots: int = 0
    recomputed: int = 0
    bits: float = 0.0  # κ·Σ rate of all slots, without lost grants
    grants_lost: int = 0  # number of grants above the capacity
    bypassed_bits: float = 0.0  # delivered without the network
    gnb_j: float = 0.0  # energy of the gNB for broadcasts
    breaches: Counter[str] = field(default_factory=Counter)
    overruns: Counter[str] = field(default_factory=Counter)
    saved = ("plans", "slots", "recomputed", "bits", "grants_lost", "bypassed_bits", "gnb_j", "breaches", "overruns")

    @classmethod
    def of(cls, experiment: Experiment, link: Link) -> "Audit":
        """The audit of a run; user-defined parts are held to fewer laws."""
        parts = experiment.scheme.kind, experiment.mac.scheduler, experiment.rat.method
        binding, edf, floors = (not is_part(part) for part in parts)
        return cls(link, experiment.slots.slot_s, binding, Access.of(experiment), edf, floors)

    def use(self, experiment: Experiment) -> None:
        """Check from now on with the keys of this experiment, some of which have changed."""
        changed = Audit.of(experiment, Link.of(experiment.radio))
        self.link, self.access, self.edf, self.floors = changed.link, changed.access, changed.edf, changed.floors

    def round(self, report: RoundReport) -> None:
        """Check the plan of a finished round, and count its overruns."""
        for decision in report.decisions:
            self.gnb_j += decision.broadcast.energy_j if decision.broadcast else 0.0
            if decision.plan.bypasses_network:
                self.bypassed_bits += sum(outcome.account.bits_drained for outcome in decision.outcomes)
        self.plans += len(report.constrained)
        for law, sentence in broken_laws(report):
            if self.binding:
                raise AuditFailed(f"round {report.round} breaks {law}: {sentence}")
            self.breaches[law] += 1
        self.overruns.update(report.overruns())

    def burst(self, burst: Burst) -> None:
        """Check the slots of a burst, after the MAC has decided them."""
        log, slots = burst.log, burst.slots
        prbs, power_w, rate_bps = log.prbs[:slots], log.power_w[:slots], log.rate_bps[:slots]
        bits_left, bits_lost = log.bits_left[:slots], log.bits_lost[:slots]
        first, self.slots = self.slots, self.slots + slots
        self.bits += self.slot_s * float(rate_bps.sum()) - float(bits_lost.sum())
        self.grants_lost += int((bits_lost > 0).sum())
        kept = {  # nan breaks C12, and the laws of rates and queues
            "C7 or C9: more pRBs are allocated than exist": prbs.sum(axis=1) <= self.link.prbs,
            "C10: a negative number of pRBs": prbs >= 0,
            "C11: power without a pRB, or below zero": ~((power_w < 0) | (power_w > 0) & (prbs == 0)),
            "C12: more power than P_max": power_w <= self.link.max_power_w * (1 + _TOLERANCE),
            "a rate that is negative or not a number": (rate_bps >= 0) & (rate_bps < np.inf),
            "a queue below zero": bits_left >= 0,
            "more bits lost than granted": (bits_lost >= 0) & (bits_lost <= self.slot_s * rate_bps * (1 + _TOLERANCE)),
        }
        for law, entries in kept.items():
            if not entries.all():
                slot = int(np.argmin(entries.reshape(slots, -1).all(axis=1)))
                raise AuditFailed(f"slot {burst.first_slot + slot} breaks {law}.")
        for index in range(-first % EVERY, slots, EVERY):
            self.recomputed += 1
            for law, sentence in DecidedSlot(self, burst, index).broken():
                raise AuditFailed(f"slot {burst.first_slot + index} breaks {law}: {sentence}")

    def close(self, ledger: Ledger) -> None:
        """At the end of the run: check that the ledger adds up, and that the slots carried all bits that arrived."""
        ledger.check()
        arrived = ledger.totals.bits_drained - self.bypassed_bits
        if arrived > self.bits * (1 + 1e-6) + 1e-3:
            raise AuditFailed(f"{arrived!r} bits arrived, but the slots carried {self.bits!r} at most.")

    def figures(self) -> dict[str, Any]:
        """The audit's entries of summary.json."""
        return {
            "plans_audited": self.plans,
            "slots_audited": self.slots,
            "slots_recomputed": self.recomputed,
            "grants_lost": self.grants_lost,
            "gnb_energy_j": self.gnb_j,
            "plan_breaches": dict(sorted(self.breaches.items())),
            "overruns": {name: self.overruns[name] for name in OVERRUNS},
        }


def broken_laws(report: RoundReport) -> Iterator[tuple[str, str]]:
    """(constraint, sentence) for each violation of C1–C6, from orders and observation, not from the optimizer."""
    worst_j: defaultdict[int, float] = defaultdict(float)  # CV -> energy of all its orders of the round
    cost, budget = 0.0, report.decisions[0].observation.constants.budget
    for decision in report.constrained:
        plan, outcomes, limit = decision.plan, decision.outcomes, decision.observation.constants.max_selected
        if plan.limited and len(outcomes) > limit:
            yield "C1", f"{len(outcomes)} CVs were ordered, |C_k| = {limit}."
        problem = decision.observation.problem()
        for outcome in outcomes:
            worst_j[outcome.order.cv] += outcome.order.worst_j
            yield from _broken_by(outcome.order, decision, problem, worst_j[outcome.order.cv])
        worst_cost = sum(outcome.worst_cost for outcome in outcomes)
        if plan.cost is not None and abs(plan.cost - worst_cost) > 1e-6 * max(worst_cost, 1.0):
            yield "C5", f"the plan states a cost of {plan.cost:.6g}, but its orders cost up to {worst_cost:.6g}."
        cost += worst_cost
    if cost > budget * (1 + _TOLERANCE):
        yield "C5", f"the orders cost up to {cost:.6g}, the budget is {budget:.6g}."


def _broken_by(
    order: TrainOrder, decision: Decision, problem: VeflProblem, worst_j: float
) -> Iterator[tuple[str, str]]:
    """C2–C4 and C6: an order is within round, sojourn bound, energy budget (of all orders of a CV) and allowed ranges.

    Iterations are from l_des (if possible; no l_des for equal shares) to l_max, frequencies those of the CPU.
    """
    observation, cv = decision.observation, f"CV {order.cv}"
    snapshot, constants = observation.snapshot, observation.constants
    row = int(np.searchsorted(observation.cv, order.cv))
    trained_ns, worst_slots = order.model_ns + order.train_ns, int(observation.worst_slots[row])
    worst_ns = worst_delay_ns(constants.access, constants.grid, order.ordered_ns, trained_ns, worst_slots)
    for law, limit_ns in (("C2", constants.round_ns), ("C3", sojourn_ns(float(snapshot.sojourn_s[row])))):
        if worst_ns > limit_ns:
            yield law, f"{cv} needs up to {worst_ns / 1e9:.6f} s of {limit_ns / 1e9:.6f} s."
    budget_j = snapshot.agreements[row].energy_budget_j
    if worst_j > budget_j * (1 + _TOLERANCE):
        yield "C4", f"{cv} needs up to {worst_j:.6g} J of {budget_j:.6g} J."
    least, most = 1 if decision.plan.status == "equal_share" else int(problem.least[row]), problem.max_iterations
    if not least <= order.iterations <= most:
        yield "C6", f"{cv} was ordered {order.iterations} iterations, allowed are {least} to {most}."
    low_hz, high_hz = float(problem.cpu_min_hz[row]), float(problem.cpu_max_hz[row])
    if not low_hz * (1 - _TOLERANCE) <= order.cpu_hz <= high_hz * (1 + _TOLERANCE):
        yield "C6", f"{cv} was ordered {order.cpu_hz:.6g} Hz, it runs at {low_hz:.6g} to {high_hz:.6g} Hz."


def worst_delay_ns(access: Access, grid: SlotGrid, ordered_ns: Any, trained_ns: Any, worst_slots: Any) -> Any:
    """Time from an order to the end of its upload if that takes t̄_tx uplink slots from the first possible one on.

    `trained_ns`: time from the order to the end of its training. All of them are numbers, or arrays.
    """
    if access.is_immediate:
        return trained_ns + worst_slots * grid.slot_ns
    offered_slot = -(-(ordered_ns + trained_ns) // grid.slot_ns)
    return access.end_slot(offered_slot, worst_slots) * grid.slot_ns - ordered_ns


_Law = tuple[str, NDArray[np.bool_], str, tuple[Any, ...]]
"""Name, which entries (CVs or pRBs) of the slot break it, a sentence, and its values: one number, or one per entry."""


class DecidedSlot:
    """A slot and its grants, with the laws that it must obey; arrays have one entry per eligible upload, in CV order.

    The MAC decides slots in compiled code. This uses none of that code, only its inputs (channel, uploads) and grants.
    """

    def __init__(self, audit: Audit, burst: Burst, index: int) -> None:
        self.audit, self.link, self.burst, self.index = audit, audit.link, burst, index
        self.number = burst.first_slot + index  # of the slot since the start of the run
        self.log = SlotLog(*(column[index] for column in burst.log))
        self.cv = np.array([f"CV {upload.cv}" for upload in burst.uploads])
        self.share = float(audit.access.pattern.shares(self.number, 1)[0])  # of the symbols of a full uplink slot
        self.owns = np.arange(len(self.cv))[:, None] == self.log.owner  # I_{v,z}; shape (CVs, pRBs)
        self.owned = self.owns.sum(axis=1)
        self.served = self.owned > 0

    def broken(self) -> Iterator[tuple[str, str]]:
        """(law, sentence) for every law that the slot breaks, and every CV or pRB that breaks it."""
        laws = [*self.laws_of_grants(), *self.laws_of_powers(), *self.laws_of_rates()]
        for name, is_broken, sentence, values in (*laws, *self.laws_of_edf()) if self.audit.edf else laws:
            for entry in np.flatnonzero(is_broken):
                yield name, sentence.format(*(np.broadcast_to(value, is_broken.shape)[entry] for value in values))

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
        limits = {"its pRBs carry": known_bps, "it has left to send": self.log.bits_left / self.audit.slot_s}
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
        if self.audit.floors and self.log.outcome in (AllocationStatus.OPTIMAL, AllocationStatus.GAP):
            slots = self.audit.access.pattern.slots_between(self.number, deadline)
            slots = slots if len(backlogged) <= prbs else slots * prbs // len(backlogged)
            floor_bps = is_scheduled * self.share * bits / self.audit.slot_s / np.maximum(1, slots)
            missed_bps = np.maximum(floor_bps - rate_bps, 0)
            worst = (np.arange(len(cv)) == missed_bps.argmax()) & ~(missed_bps.sum() <= _MET * floor_bps.sum())
            yield "a rate floor", worst, "{} needs {:.6g} bit/s and has {:.6g}.", (cv, floor_bps, rate_bps)
