"""The audit of a run, done while it runs: constraints C1–C6 for every plan, C7–C12 for every slot.

One slot in EVERY is recomputed from the definitions (slot_check.py), because the log of a slot cannot show whether
a rate is within the capacity, a floor is met or the order of deadlines is kept. A violation by a built-in scheme or by
a slot ends the run. Uploads that take longer, cost more or end later than the planned worst case are not violations:
they are overruns, which are counted and reported.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vefl_sim.core.clock import SlotGrid
from vefl_sim.core.errors import AuditFailed
from vefl_sim.core.state import State
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import is_part
from vefl_sim.optimize.vefl.problem import VeflProblem
from vefl_sim.protocol.ledger import Ledger
from vefl_sim.protocol.mac import Burst
from vefl_sim.protocol.messages import OVERRUNS, Decision, RoundReport, TrainOrder
from vefl_sim.radio.access import Access
from vefl_sim.radio.link import Link
from vefl_sim.schemes.observation import sojourn_ns
from vefl_sim.simulation.slot_check import SlotCheck

_TOLERANCE = 1e-9  # relative: sums in another order
EVERY = 127  # one slot in so many is recomputed; prime, so that the position within a burst varies
_COUNTED = ("plans", "slots", "recomputed", "transmit_j", "bits", "bits_lost", "grants_lost", "bypassed_bits", "gnb_j")


@dataclass
class Audit:
    """Checks every plan and every slot of a run, and counts them."""

    link: Link
    slot_s: float  # κ
    binding: bool = True  # False: the scheme is user-defined, so violations of C1–C6 are counted and do not end the run
    check: SlotCheck | None = None  # recomputes slots; None: no slot is recomputed
    plans: int = 0
    slots: int = 0
    recomputed: int = 0
    transmit_j: float = 0.0  # κ·Σ power of all slots
    bits: float = 0.0  # κ·Σ rate of all slots, without lost grants
    bits_lost: float = 0.0  # of grants above the capacity
    grants_lost: int = 0  # number of these grants
    bypassed_bits: float = 0.0  # delivered without the network
    gnb_j: float = 0.0  # energy of the gNB for broadcasts
    breaches: Counter[str] = field(default_factory=Counter)
    overruns: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, experiment: Experiment, link: Link) -> "Audit":
        """The audit of a run; user-defined parts are held to fewer laws."""
        slot_s, edf, floors = experiment.slots.slot_s, experiment.mac.scheduler, experiment.rat.method
        check = SlotCheck(link, slot_s, Access.of(experiment), edf=not is_part(edf), floors=not is_part(floors))
        return cls(link, slot_s, binding=not is_part(experiment.scheme.kind), check=check)

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
        self.transmit_j += self.slot_s * float(power_w.sum())
        self.bits += self.slot_s * float(rate_bps.sum()) - float(bits_lost.sum())
        self.bits_lost += float(bits_lost.sum())
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
        if self.check:
            for index in range(-first % EVERY, slots, EVERY):
                self.recomputed += 1
                for law, sentence in self.check.broken(burst, index):
                    raise AuditFailed(f"slot {burst.first_slot + index} breaks {law}: {sentence}")

    def close(self, ledger: Ledger) -> None:
        """At the end of the run: check that the ledger adds up and agrees with the energy and bits of all slots."""
        ledger.check()
        booked = ledger.totals
        for what, ours, theirs, least in (
            ("slots used (J)", self.transmit_j, booked.transmit_j, 1e-9),
            ("slots lost (bits)", self.bits_lost, booked.bits_lost, 1e-3),
            ("broadcasts used (J)", self.gnb_j, ledger.gnb_j, 1e-9),
        ):
            if abs(theirs - ours) > 1e-6 * max(ours, least):
                raise AuditFailed(f"what the {what} is {ours!r}, but {theirs!r} was booked.")
        if booked.bits_drained - self.bypassed_bits > self.bits * (1 + 1e-6) + 1e-3:
            raise AuditFailed(f"{booked.bits_drained!r} bits arrived, but the slots carried {self.bits!r} at most.")

    def state(self) -> State:
        """The counters, for a checkpoint."""
        counted = {name: getattr(self, name) for name in _COUNTED}
        return counted | {"breaches": dict(self.breaches), "overruns": dict(self.overruns)}

    def restore(self, state: State) -> None:
        """Restore the counters from a checkpoint."""
        vars(self).update({name: state[name] for name in _COUNTED})
        self.breaches, self.overruns = Counter(state["breaches"]), Counter(state["overruns"])

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
