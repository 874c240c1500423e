"""Run many slots in one call: schedule, allocate and send, until a buffer is empty or something may have changed.

The MAC runs a single slot and 256 slots with this same kernel, so a burst equals single slots bit for bit.
"""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.kernel import dot
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.allocate import AllocationStatus, Found, allocate
from vefl_sim.optimize.rat.problem import Allocation, SlotProblem

_allocate = allocate.inlined  # by far the largest part of `run_slots`
LAST_BIT = 1e-6  # bits: a smaller rest is rounding, not data


class CellConstants(NamedTuple):
    """Values that are the same in every slot."""

    method: int  # AllocationMethod; −1: a policy in Python allocates
    slot_s: float  # κ
    nats_hz: float  # W′ = ω(1−υ)/ln 2
    max_power_w: float
    tradeoff: float  # C
    circuit_w: float  # added to the power of every scheduled CV, in β only


class Queues(NamedTuple):
    """Upload state of the CVs that may send, one entry each, in ascending order of their number."""

    snr_per_watt: Floats  # without fast fading
    earliest_slot: Ints
    deadline_slot: Ints
    bits_left: Floats
    bits_drained: Floats
    transmit_j: Floats
    slots: Ints
    snr_sum: Floats


class Log(NamedTuple):
    """The results of each slot; rows are slots, columns CVs."""

    prbs: Ints  # 0: not scheduled
    power_w: Floats
    rate_bps: Floats
    bits_left: Floats  # at the start of the slot
    gap: Floats  # (bound − objective) / Σ a·r, nan where there is no bound; one column
    outcome: Ints  # AllocationStatus; one column
    owner: Ints  # column of the CV that owns the pRB, −1: no CV; columns are pRBs
    watts: Floats  # transmit power on the pRB; columns are pRBs


class Books(NamedTuple):
    """What the slots of a burst change."""

    queues: Queues
    efficiency: Floats  # Σ rate and Σ power of the round, and its first β (barBetaDink)
    log: Log
    last_bits: Floats  # bits of the last slot, by CV; they arrive when it ends


class Grants(NamedTuple):
    """What the scheduled CVs of one slot were granted; rows are in scheduling order."""

    cv: Ints  # column of the CV in the log
    gain: Floats  # SNR per watt; shape (rows, pRBs)
    owner: Ints  # row of the owner of each pRB, −1: none
    watts: Floats  # transmit power on each pRB
    rate_bps: Floats  # of each row
    worth: float  # Σ a·r
    found: Found  # in the unit of `worth`


def new_log(slots: int, cvs: int, prbs: int) -> Log:
    """An empty log for a burst of this size."""
    shape = (slots, cvs)
    return Log(
        np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(slots),
        np.zeros(slots, np.int64), np.full((slots, prbs), -1), np.zeros((slots, prbs)),
    )  # fmt: skip


@kernel
def run_slots(with_large, cell, first_slot, fading, books):
    """Run up to len(fading) slots; returns how many were run. `with_large` as for `allocate`.

    The queues are updated for all of these slots except for the bits of the last one.
    """
    count, cvs, prbs = fading.shape
    scheduled = min(cvs, prbs)
    queues, empty = books.queues, np.zeros(scheduled)
    problem = SlotProblem(
        np.empty((scheduled, prbs)), empty.copy(), 0.0, np.full(scheduled, cell.max_power_w), empty.copy(),
        empty.copy(), empty.copy(),
    )  # fmt: skip
    allocation = Allocation(np.empty(prbs, np.int64), np.empty(prbs), np.empty(scheduled))
    for index in range(count):
        order = _edf(queues.deadline_slot, queues.bits_left)[:scheduled]
        problem = _slot_problem(cell, first_slot + index, fading[index], order, books, problem)
        found = _allocate(with_large, cell.method, problem, allocation)
        worth = dot(problem.weight, allocation.rate)
        rate_bps = allocation.rate * cell.nats_hz
        grants = Grants(order, problem.gain, allocation.owner, allocation.watts, rate_bps, worth, found)
        emptied = settle(cell, index, grants, books)
        if emptied or index == count - 1:
            return index + 1
        for v in range(cvs):
            queues.bits_drained[v] += books.last_bits[v]
            queues.bits_left[v] -= books.last_bits[v]
    return count


@kernel
def _slot_problem(cell, slot, fading, order, books, problem):
    """The RAT sub-problem of a slot, in the arrays of `problem`; weights are relative to the largest."""
    queues = books.queues
    cvs, prbs = fading.shape
    beta = books.efficiency[0] / books.efficiency[1] if books.efficiency[1] > 0 else books.efficiency[2]
    most = 0.0
    for v in order:
        most = max(most, queues.bits_left[v])
    largest = cell.tradeoff + cell.slot_s * most
    for row in range(len(order)):
        v = order[row]
        left = queues.bits_left[v]
        for prb in range(prbs):
            problem.gain[row, prb] = fading[v, prb] * queues.snr_per_watt[v]
        problem.weight[row] = (cell.tradeoff + cell.slot_s * left) / largest
        problem.cap[row] = left / cell.slot_s / cell.nats_hz
        problem.floor[row] = problem.cap[row] / slots_to_count_on(queues.deadline_slot[v] - slot, cvs, prbs)
        problem.mean[row] = queues.bits_drained[v] / max(1, slot - queues.earliest_slot[v])
    price = cell.tradeoff / largest * beta / cell.nats_hz
    return SlotProblem(problem.gain, problem.weight, price, problem.power, problem.floor, problem.cap, problem.mean)


@kernel
def settle(cell, index, grants, books):
    """Book the grants of slot `index`: log, efficiency, energy, bits; returns whether a queue will be empty.

    The bits stay in `books.last_bits` until the slot ends.
    """
    queues, log, efficiency = books.queues, books.log, books.efficiency
    found, order, owner, watts = grants.found, grants.cv, grants.owner, grants.watts
    log.outcome[index] = found.status
    certified = found.status == AllocationStatus.OPTIMAL or found.status == AllocationStatus.GAP
    log.gap[index] = max(0.0, found.bound - found.objective) / max(grants.worth, 1e-300) if certified else np.nan
    for v in range(len(queues.bits_left)):
        log.bits_left[index, v] = queues.bits_left[v]
    books.last_bits[:] = 0.0
    emptied = False
    for row in range(len(order)):
        v = order[row]
        owned, spent, snr = 0, 0.0, 0.0
        for prb in range(len(owner)):
            if owner[prb] == row:
                log.owner[index, prb], log.watts[index, prb] = v, watts[prb]
                owned += 1
                spent += watts[prb]
                snr += watts[prb] * grants.gain[row, prb]
        log.prbs[index, v], log.power_w[index, v], log.rate_bps[index, v] = owned, spent, grants.rate_bps[row]
        efficiency[0] += grants.rate_bps[row]
        efficiency[1] += spent + cell.circuit_w
        if owned == 0:
            continue
        queues.slots[v] += 1
        queues.snr_sum[v] += snr / owned
        queues.transmit_j[v] += spent * cell.slot_s
        granted = grants.rate_bps[row] * cell.slot_s
        books.last_bits[v] = arriving_bits(granted, queues.bits_left[v])
        emptied = emptied or books.last_bits[v] == queues.bits_left[v]
    return emptied


@kernel
def arriving_bits(granted, left):
    """The bits that arrive of those granted: all of them, and a rest of less than LAST_BIT with them."""
    return left if granted > left - LAST_BIT else granted


@kernel
def slots_to_count_on(slots_left, backlogged, prbs):
    """The number of its remaining slots in which a CV can expect to be scheduled (UlReqTxBits).

    ⌊min(1, Z/|U|)·slots left⌋, at least 1: a CV past its deadline but still in coverage needs to send all at once.
    """
    if backlogged > prbs:
        slots_left = slots_left * prbs // backlogged
    return max(1, slots_left)


@kernel
def _edf(deadline_slot, bits_left):
    """Algorithm 3, like `edf.edf`: by deadline, then larger backlog, then number; insertion sort, as CVs are few."""
    order = np.arange(len(bits_left))
    for at in range(1, len(order)):
        v = order[at]
        to = at
        while to > 0 and (
            deadline_slot[v] < deadline_slot[order[to - 1]]
            or (deadline_slot[v] == deadline_slot[order[to - 1]] and bits_left[v] > bits_left[order[to - 1]])
        ):
            order[to] = order[to - 1]
            to -= 1
        order[to] = v
    return order
