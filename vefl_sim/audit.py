"""The laws of a run, checked while it happens: C1–C6 on every plan, C7–C12 in every slot.

A plan of ours or a slot that breaks a law ends the run. What the channel does to a lawful plan is another matter:
uploads that take longer, cost more or come later than the worst case are overruns, which are counted and reported.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vefl_sim.errors import AuditFailed
from vefl_sim.protocol.mac import Burst
from vefl_sim.protocol.messages import ClosedRound, Outcome
from vefl_sim.protocol.overruns import OVERRUNS, overruns
from vefl_sim.radio.link import Link

_TOLERANCE = 1e-9  # relative: sums in another order


@dataclass
class Audit:
    """Checks rounds and slots as they come, and remembers how many."""

    link: Link
    binding: bool = True  # False: the scheme is the user's own, so breaches of C1–C6 are only counted
    plans: int = 0
    slots: int = 0
    breaches: Counter[str] = field(default_factory=Counter)
    overruns: Counter[str] = field(default_factory=Counter)

    def round(self, closed: ClosedRound) -> None:
        """Check the plan of a round that is over, and count what came out worse than planned."""
        if closed.plan.assured:
            return
        self.plans += 1
        for law, sentence in broken_laws(closed):
            if self.binding:
                raise AuditFailed(f"round {closed.round} breaks {law}: {sentence}")
            self.breaches[law] += 1
        self.overruns.update(overruns(closed))

    def burst(self, burst: Burst) -> None:
        """Check slots that have been decided."""
        self.slots += burst.slots
        prbs, power_w = burst.log.prbs[: burst.slots], burst.log.power_w[: burst.slots]
        rate_bps = burst.log.rate_bps[: burst.slots]
        limit_w = self.link.max_power_w * (1 + _TOLERANCE)
        laws = {
            "C7: a pRB belongs to two CVs, or to nobody known": prbs.sum(axis=1) > self.link.prbs,
            "C9: more CVs are scheduled than there are pRBs": (prbs > 0).sum(axis=1) > self.link.prbs,
            "C10: a negative number of pRBs": (prbs < 0).any(axis=1),
            "C11: power without a pRB, or below zero": ((power_w < 0) | ((power_w > 0) & (prbs == 0))).any(axis=1),
            "C12: more power than P_max": ~(power_w <= limit_w).all(axis=1),
            "a rate that is negative or not a number": ~((rate_bps >= 0) & np.isfinite(rate_bps)).all(axis=1),
            "a queue below zero": ~(burst.log.bits_left[: burst.slots] >= 0).all(axis=1),
        }
        for law, broken in laws.items():
            if broken.any():
                raise AuditFailed(f"slot {burst.first_slot + int(np.argmax(broken))} breaks {law}.")

    def figures(self) -> dict[str, Any]:
        """As they stand in summary.json."""
        return {
            "plans_audited": self.plans,
            "slots_audited": self.slots,
            "plan_breaches": dict(sorted(self.breaches.items())),
            "overruns": {name: self.overruns[name] for name in OVERRUNS},
        }


def broken_laws(closed: ClosedRound) -> Iterator[tuple[str, str]]:
    """C1–C6 of a plan, from its orders alone: nothing here trusts the optimizer."""
    terms, cost = closed.observation.terms, 0.0
    if closed.plan.limited and len(closed.outcomes) > terms.max_selected:
        yield "C1", f"{len(closed.outcomes)} CVs were ordered, |C_k| = {terms.max_selected}."
    for outcome in closed.outcomes:
        row = int(np.searchsorted(closed.observation.cv, outcome.order.cv))
        cost += outcome.worst_cost
        yield from _broken_by(closed, outcome, row)
    if cost > terms.budget * (1 + _TOLERANCE):
        yield "C5", f"the orders cost up to {cost:.6g}, the budget is {terms.budget:.6g}."


def _broken_by(closed: ClosedRound, outcome: Outcome, row: int) -> Iterator[tuple[str, str]]:
    order, observation = outcome.order, closed.observation
    sighting, terms = observation.sighting, observation.terms
    worst_ns = order.train_ns + int(observation.worst_slots[row]) * terms.grid.slot_ns
    for law, limit_ns in (("C2", terms.round_ns), ("C3", int(min(sighting.sojourn_s[row] * 1e9, 9e18)))):
        if worst_ns > limit_ns:
            yield law, f"CV {order.cv} needs up to {worst_ns / 1e9:.6f} s of {limit_ns / 1e9:.6f} s."
    budget_j = sighting.agreements[row].energy_budget_j
    if order.worst_j > budget_j * (1 + _TOLERANCE):
        yield "C4", f"CV {order.cv} needs up to {order.worst_j:.6g} J of {budget_j:.6g} J."
    wanted = min(terms.min_iterations, closed.plan.max_iterations.get(order.cv, terms.min_iterations))
    if order.iterations < wanted:
        yield "C6", f"CV {order.cv} was ordered {order.iterations} iterations, wanted were {wanted}."
