"""Overruns: limits that a round exceeded although its plan respected them in the worst case."""

from collections.abc import Iterator

import numpy as np

from vefl_sim.protocol.messages import OrderOutcome, RoundReport
from vefl_sim.schemes.observation import Observation

OVERRUNS = ("upload_slots", "vehicle_energy", "vehicle_cost", "deadline", "round_cost")
_TOLERANCE = 1e-9  # relative; covers sums in a different order


def overruns(report: RoundReport) -> Iterator[str]:
    """The names of the limits that a round exceeded, once for every time it did so.

    upload_slots: more slots than t̄_tx. vehicle_energy: more energy than e_bud. vehicle_cost: a higher charge than
    planned. deadline: not received by the end of the sojourn bound or of the round. round_cost: more paid than Ξ.
    """
    paid = 0.0
    for decision in report.constrained:
        for outcome in decision.outcomes:
            yield from _overruns(decision.observation, outcome)
            paid += outcome.account.paid
    if paid > report.decisions[0].observation.constants.budget * (1 + _TOLERANCE):
        yield "round_cost"


def _overruns(observation: Observation, outcome: OrderOutcome) -> Iterator[str]:
    """The limits that one order exceeded."""
    row = int(np.searchsorted(observation.cv, outcome.order.cv))
    pattern, worst_slots = observation.constants.access.pattern, int(observation.worst_slots[row])
    if outcome.tx_slots > (worst_slots if pattern.is_all_uplink else pattern.most_slots(worst_slots)):
        yield "upload_slots"
    if outcome.account.energy_j > observation.snapshot.agreements[row].energy_budget_j * (1 + _TOLERANCE):
        yield "vehicle_energy"
    if outcome.account.paid > outcome.worst_cost * (1 + _TOLERANCE):
        yield "vehicle_cost"
    late = outcome.end_ns > observation.constants.grid.start_ns(outcome.order.deadline_slot)
    if late or outcome.lost in ("round_ended", "expired"):
        yield "deadline"
