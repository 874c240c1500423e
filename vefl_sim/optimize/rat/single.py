"""Send one slot with given owners of the pRBs; the rest of a run is not simulated.

Everything but the owners is computed by the functions with which the MAC runs its bursts (burst.py).
"""

import numpy as np

from vefl_sim.core.kernel import dot, total
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.allocate import AllocationStatus
from vefl_sim.optimize.rat.burst import apply_grants, efficiency_of, fill_demand, first_rows, schedule, slot_problem
from vefl_sim.optimize.rat.burst_state import Grants
from vefl_sim.optimize.rat.problem import Solution
from vefl_sim.optimize.rat.water import demand_of, water_fill


@kernel
def look_at_slot(config, slot, order, state, pattern, demand, arrays):
    """Schedule the CVs of a slot into `order`, and fill what they ask for; returns (their number, λ, unit of weights).

    Slots in which nothing can be sent have no CVs.
    """
    queues, known = state.queues, state.log.bits_known[slot.row]
    for v in range(len(known)):
        known[v] = queues.bits_left[v] if slot.number >= queues.earliest_slot[v] else 0.0
    scheduled, backlogged = schedule(queues.deadline_slot, known, min(len(known), slot.fading.shape[1]))
    if slot.share == 0.0 or backlogged == 0:
        return 0, 0.0, 1.0
    rows = len(scheduled)
    order[:rows] = scheduled
    fill_demand(slot, order[:rows], backlogged, state, pattern, None, demand)
    problem = slot_problem(config, slot.share, rows, demand, efficiency_of(state.efficiency), arrays)
    most = 0.0
    for row in range(rows):
        most = max(most, demand.bits[row])
    return rows, problem.price, config.tradeoff + config.slot_s * slot.share * most


@kernel
def send_in_slot(config, slot, rows, price, order, arrays, owner, shares, watts, state):
    """Send in a slot that was looked at; returns Σ a·r − λ·ΣP in the units of the kernels.

    `owner`: the row of the CV that owns the pRB, −1: nobody. `shares`: None, and the powers of each CV are
    water-filled; or the share of P_max/n with which the owner of n pRBs sends on each of them.
    """
    rates = np.zeros(rows)
    problem = first_rows(arrays, rows, price)
    watts[:] = 0.0
    for row in range(rows):
        own = np.flatnonzero(owner == row)
        if shares is None:
            rates[row], _ = water_fill(problem.gain[row], own, demand_of(problem, row), watts)
        else:
            for prb in own:
                watts[prb] = shares[prb] * problem.power[row] / len(own)
                rates[row] += np.log1p(watts[prb] * problem.gain[row, prb])
            rates[row] = min(rates[row], problem.cap[row])
    objective = dot(problem.weight, rates) - price * total(watts)
    solution = Solution(objective, np.nan, AllocationStatus.POLICY)
    rate_bps = rates * config.nats_hz
    log = state.log
    log.bits[slot.row, :], log.power_w[slot.row, :], log.rate_bps[slot.row, :] = 0.0, 0.0, 0.0
    grants = Grants(order[:rows], problem.gain, owner, watts, rate_bps, objective, solution)
    apply_grants(config, slot, grants, state, None)
    for v in range(len(state.queues)):
        state.queues.bits_drained[v] += log.bits[slot.row, v]
        state.queues.bits_left[v] -= log.bits[slot.row, v]
    return objective
