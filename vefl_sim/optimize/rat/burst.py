"""Run many slots in one call: schedule, allocate and send, until a buffer is empty or something may have changed.

The MAC runs a single slot and 256 slots with this same kernel, so a burst equals single slots bit for bit.
"""

import numpy as np

from vefl_sim.core.kernel import dot
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.allocate import allocate
from vefl_sim.optimize.rat.books import Grants, Moment, idle, know_backlogs, settle
from vefl_sim.optimize.rat.fixed_power import allocate_fixed
from vefl_sim.optimize.rat.problem import Allocation, SlotProblem

_allocate = allocate.inlined  # by far the largest part of `run_slots`


@kernel
def run_slots(with_large, cell, first_slot, fading, books, air, knowledge, prb_watts):
    """Run up to len(fading) slots; returns how many were run. `with_large` as for `allocate`.

    `knowledge` is None where the gNB knows the channel, `prb_watts` (transmit power of each CV on a pRB) where it
    chooses powers: Numba then compiles without them. The queues are updated for all of these slots except for the bits
    of the last one.
    """
    count, cvs, prbs = fading.shape
    most = min(cvs, prbs)
    queues, known, empty = books.queues, books.log.bits_known, np.zeros(most)
    arrays = SlotProblem(
        np.empty((most, prbs)), empty.copy(), 0.0, np.full(most, cell.max_power_w), empty.copy(), empty.copy(),
        empty.copy(),
    )  # fmt: skip
    owner, watts, rates = np.empty(prbs, np.int64), np.empty(prbs), np.empty(most)
    for index in range(count):
        moment = Moment(first_slot + index, air.share[index], fading[index])
        know_backlogs(moment.slot, queues, knowledge, known[index])
        order, backlogged = _order(queues.deadline_slot, known[index], most)
        if moment.share == 0.0 or backlogged == 0:
            emptied = idle(index, books)
        else:
            problem = _of_size(len(order), arrays)
            allocation = Allocation(owner, watts, rates[: len(order)])
            problem = _slot_problem(cell, moment, order, backlogged, books, index, air, knowledge, problem)
            if prb_watts is None:
                found = _allocate(with_large, cell.method, problem, allocation)
            else:
                found = allocate_fixed(cell.method, problem, prb_watts, order, allocation)
            worth = dot(problem.weight, allocation.rate)
            rate_bps = allocation.rate * cell.nats_hz
            grants = Grants(order, problem.gain, allocation.owner, allocation.watts, rate_bps, worth, found)
            emptied = settle(cell, index, grants, books, moment, knowledge)
        if emptied or index == count - 1:
            return index + 1
        for v in range(cvs):
            queues.bits_drained[v] += books.last_bits[v]
            queues.bits_left[v] -= books.last_bits[v]
    return count


@kernel
def _of_size(rows, problem):
    """The first rows of a problem's arrays."""
    return SlotProblem(
        problem.gain[:rows], problem.weight[:rows], problem.price, problem.power[:rows], problem.floor[:rows],
        problem.cap[:rows], problem.mean[:rows],
    )  # fmt: skip


@kernel
def _order(deadline_slot, known, most):
    """The CVs that Algorithm 3 schedules, and the number of all whose backlog is known."""
    order = _edf(deadline_slot, known)
    backlogged = 0
    for v in order:
        if known[v] > 0:
            order[backlogged] = v
            backlogged += 1
    return order[: min(backlogged, most)], backlogged


@kernel
def _slot_problem(cell, moment, order, backlogged, books, index, air, knowledge, problem):
    """The RAT sub-problem of a slot, in the arrays of `problem`; weights are relative to the largest."""
    queues, known = books.queues, books.log.bits_known[index]
    prbs, slot_s = moment.fading.shape[1], cell.slot_s * moment.share
    beta = books.efficiency[0] / books.efficiency[1] if books.efficiency[1] > 0 else books.efficiency[2]
    most = 0.0
    for v in order:
        most = max(most, known[v])
    largest = cell.tradeoff + slot_s * most
    for row in range(len(order)):
        v = order[row]
        for prb in range(prbs):
            if knowledge is None:
                problem.gain[row, prb] = moment.fading[v, prb] * queues.snr_per_watt[v]
            else:
                problem.gain[row, prb] = knowledge.gain[index, v, prb]
        slots_left = uplink_slots(air.before, air.full, moment.slot, queues.deadline_slot[v])
        problem.weight[row] = (cell.tradeoff + slot_s * known[v]) / largest
        problem.cap[row] = known[v] / slot_s / cell.nats_hz
        problem.floor[row] = known[v] / cell.slot_s / cell.nats_hz / slots_to_count_on(slots_left, backlogged, prbs)
        problem.mean[row] = queues.bits_drained[v] / max(1, moment.slot - queues.earliest_slot[v])
    price = cell.tradeoff / largest * beta / cell.nats_hz
    return SlotProblem(problem.gain, problem.weight, price, problem.power, problem.floor, problem.cap, problem.mean)


@kernel
def uplink_slots(before, full, first, end):
    """Full uplink slots from slot `first` up to slot `end` in a TDD pattern; negative if `end` comes first."""
    length = len(before) - 1
    symbols = (end // length - first // length) * before[length] + before[end % length] - before[first % length]
    return symbols // full


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
