"""What came out worse than the worst case that was planned with."""

from collections.abc import Iterator

import numpy as np

from vefl_sim.protocol.messages import OrderOutcome, RoundReport
from vefl_sim.schemes.observation import Observation

OVERRUNS = ("upload_slots", "vehicle_energy", "vehicle_cost", "deadline", "round_cost")
_TOLERANCE = 1e-9  # relative: sums in another order


def overruns(closed: RoundReport) -> Iterator[str]:
    """The names of the limits that a round overran, each as often as it did.

    More slots to upload than t̄_tx, more energy than e_bud, a higher charge than planned, not received by the end of the
    sojourn bound or of the round, and more money than Ξ in all.
    """
    paid = 0.0
    for decision in closed.constrained:
        for outcome in decision.outcomes:
            yield from _overruns(decision.observation, outcome)
            paid += outcome.account.paid
    if paid > closed.decisions[0].observation.constants.budget * (1 + _TOLERANCE):
        yield "round_cost"


def _overruns(observation: Observation, outcome: OrderOutcome) -> Iterator[str]:
    row = int(np.searchsorted(observation.cv, outcome.order.cv))
    if outcome.tx_slots > observation.worst_slots[row]:
        yield "upload_slots"
    if outcome.account.energy_j > observation.snapshot.agreements[row].energy_budget_j * (1 + _TOLERANCE):
        yield "vehicle_energy"
    if outcome.account.paid > outcome.worst_cost * (1 + _TOLERANCE):
        yield "vehicle_cost"
    late = outcome.end_ns > observation.constants.grid.start_ns(outcome.order.deadline_slot)
    if late or outcome.lost in ("round_ended", "expired"):
        yield "deadline"
