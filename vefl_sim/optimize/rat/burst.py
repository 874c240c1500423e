"""Run many slots in one call: schedule, allocate and send, until a buffer is empty or something may have changed.

The MAC runs a single slot and 256 slots with this same kernel, so a burst equals single slots bit for bit. Slots with a
scheduler or a policy in Python use the functions of this file, too (`protocol/mac.py`).
"""

import numpy as np

from vefl_sim.core.kernel import dot
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.allocate import AllocationStatus, allocate, allocate_fixed
from vefl_sim.optimize.rat.burst_state import LAST_BIT, Grants, Slot, SlotDemand
from vefl_sim.optimize.rat.problem import Allocation, SlotProblem

_ROUNDING = 1e-9  # share of the capacity by which a rate may be above it
_allocate = allocate.inlined  # by far the largest part of `run_slots`


@kernel
def run_slots(with_large, config, channel, state, pattern, feedback, prb_watts):
    """Run up to len(channel.fading) slots; returns how many were run. `with_large` as for `allocate`.

    `feedback` is None where the gNB knows the channel, `prb_watts` (transmit power of each CV on a pRB) where it
    chooses powers: Numba then compiles without them. The queues are updated for all of these slots except for the bits
    of the last one.
    """
    count, cvs, prbs = channel.fading.shape
    most = min(cvs, prbs)
    queues, known, empty = state.queues, state.log.bits_known, np.zeros(most)
    gain, mean = np.empty((most, prbs)), empty.copy()
    demand = SlotDemand(gain, empty.copy(), np.empty(most, np.int64), mean)
    arrays = SlotProblem(gain, empty.copy(), 0.0, np.full(most, config.max_power_w), empty.copy(), empty.copy(), mean)
    owner, watts, rates = np.empty(prbs, np.int64), np.empty(prbs), np.empty(most)
    for index in range(count):
        number = channel.first_slot + index
        slot = Slot(index, number, pattern.share[index], channel.snr_per_watt, channel.fading[index])
        report_backlogs(number, queues, feedback, known[index])
        order, backlogged = schedule(queues.deadline_slot, known[index], most)
        if slot.share == 0.0 or backlogged == 0:
            emptied = skip_slot(index, state)
        else:
            fill_demand(slot, order, backlogged, state, pattern, feedback, demand)
            problem = slot_problem(config, slot.share, len(order), demand, efficiency_of(state.efficiency), arrays)
            allocation = Allocation(owner, watts, rates[: len(order)])
            if prb_watts is None:
                solution = _allocate(with_large, config.method, problem, allocation)
            else:
                solution = allocate_fixed(config.method, problem, prb_watts, order, allocation)
            weighted = dot(problem.weight, allocation.rate)
            rate_bps = allocation.rate * config.nats_hz
            grants = Grants(order, problem.gain, allocation.owner, allocation.watts, rate_bps, weighted, solution)
            emptied = apply_grants(config, slot, grants, state, feedback)
        if emptied or index == count - 1:
            return index + 1
        for v in range(cvs):
            queues.bits_drained[v] += state.log.bits[index, v]
            queues.bits_left[v] -= state.log.bits[index, v]
    return count


@kernel
def report_backlogs(number, queues, feedback, known):
    """Fill `known` with the backlogs that the gNB counts on: what is left, without lost bits not reported again yet.

    Reports are made at the start of the slots 0, n, 2n, …, and count for slots that begin g slots later or after.
    """
    for v in range(len(known)):
        known[v] = queues.bits_left[v]
    if feedback is not None:
        window = feedback.unreported.shape[1]
        reported = (number - feedback.grant_slots) // feedback.report_slots * feedback.report_slots
        for v in range(len(known)):
            hidden = 0.0
            for lost in range(reported, number):
                hidden += feedback.unreported[v, lost % window]
            known[v] = known[v] - hidden if known[v] - hidden > LAST_BIT else 0.0
            if window > 0:
                feedback.unreported[v, number % window] = 0.0  # room for what this slot may lose


@kernel
def schedule(deadline_slot, known, most):
    """The CVs that Algorithm 3 schedules, and the number of all whose backlog is known."""
    order = by_deadline(deadline_slot, known)
    backlogged = 0
    for v in order:
        if known[v] > 0:
            order[backlogged] = v
            backlogged += 1
    return order[: min(backlogged, most)], backlogged


@kernel
def by_deadline(deadline_slot, bits_left):
    """Algorithm 3: rows by deadline, then larger backlog, then number; insertion sort, as CVs are few."""
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


@kernel
def fill_demand(slot, order, backlogged, state, pattern, feedback, demand):
    """Fill the first rows of a `SlotDemand`, one for each scheduled CV."""
    queues, known, prbs = state.queues, state.log.bits_known[slot.row], slot.fading.shape[1]
    for row in range(len(order)):
        v = order[row]
        for prb in range(prbs):
            if feedback is None:
                demand.gain[row, prb] = slot.fading[v, prb] * slot.snr_per_watt[v]
            else:
                demand.gain[row, prb] = feedback.gain[slot.row, v, prb]
        slots_left = uplink_slots(pattern.before, pattern.full, slot.number, queues.deadline_slot[v])
        demand.bits[row] = known[v]
        demand.slots[row] = slots_to_count_on(slots_left, backlogged, prbs)
        demand.mean[row] = queues.bits_drained[v] / max(1, slot.number - queues.earliest_slot[v])


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
def efficiency_of(sums):
    """β(k, t): bits per joule of the round so far; before its first slot, of the round before."""
    return sums[0] / sums[1] if sums[1] > 0 else sums[2]


@kernel
def slot_problem(config, share, rows, demand, efficiency, arrays):
    """The RAT sub-problem of a slot, in the first rows of the arrays; weights are relative to the largest."""
    slot_s, most = config.slot_s * share, 0.0
    for row in range(rows):
        most = max(most, demand.bits[row])
    largest = config.tradeoff + slot_s * most
    for row in range(rows):
        bits = demand.bits[row]
        arrays.weight[row] = (config.tradeoff + slot_s * bits) / largest
        arrays.cap[row] = bits / slot_s / config.nats_hz
        arrays.floor[row] = bits / config.slot_s / config.nats_hz / demand.slots[row]
    return first_rows(arrays, rows, config.tradeoff / largest * efficiency / config.nats_hz)


@kernel
def first_rows(arrays, rows, price):
    """The problem of the first rows of the arrays at this price."""
    return SlotProblem(
        arrays.gain[:rows], arrays.weight[:rows], price, arrays.power[:rows], arrays.floor[:rows], arrays.cap[:rows],
        arrays.mean[:rows],
    )  # fmt: skip


@kernel
def skip_slot(index, state):
    """Log a slot in which nothing is sent; returns False, as no queue will be empty."""
    state.log.outcome[index], state.log.gap[index] = AllocationStatus.POLICY, np.nan
    for v in range(len(state.queues)):
        state.log.bits_left[index, v] = state.queues.bits_left[v]
    return False


@kernel
def apply_grants(config, slot, grants, state, feedback):
    """Send what was granted: log, efficiency, energy, bits; returns whether a queue will be empty.

    The bits stay in `log.bits` until the slot ends; a rest of less than LAST_BIT arrives with the others. A grant above
    the capacity of the slot is lost as a whole: its energy is spent, and its bits stay in the CV's buffer.
    """
    queues, log, efficiency, index = state.queues, state.log, state.efficiency, slot.row
    solution, order, owner, watts = grants.solution, grants.cv, grants.owner, grants.watts
    log.outcome[index] = solution.status
    certified = solution.status == AllocationStatus.OPTIMAL or solution.status == AllocationStatus.GAP
    above = max(0.0, solution.bound - solution.objective)
    log.gap[index] = above / max(grants.weighted_rate, 1e-300) if certified else np.nan
    for v in range(len(queues)):
        log.bits_left[index, v] = queues.bits_left[v]
    emptied = False
    for row in range(len(order)):
        v = order[row]
        owned, spent, snr, capacity = 0, 0.0, 0.0, 0.0
        for prb in range(len(owner)):
            if owner[prb] == row:
                gain = grants.gain[row, prb]
                if feedback is not None:
                    gain = slot.fading[v, prb] * slot.snr_per_watt[v]
                    capacity += np.log1p(watts[prb] * gain) * config.nats_hz
                log.owner[index, prb], log.watts[index, prb] = v, watts[prb]
                owned += 1
                spent += watts[prb]
                snr += watts[prb] * gain
        spent *= slot.share
        rate_bps = grants.rate_bps[row] * slot.share
        log.prbs[index, v], log.power_w[index, v], log.rate_bps[index, v] = owned, spent, rate_bps
        efficiency[1] += spent + config.circuit_w
        if owned == 0:
            efficiency[0] += rate_bps
            continue
        queues.slots[v] += 1
        queues.snr_sum[v] += snr / owned
        queues.transmit_j[v] += spent * config.slot_s
        granted = rate_bps * config.slot_s
        if feedback is not None and grants.rate_bps[row] > capacity * (1 + _ROUNDING):
            log.bits_lost[index, v] = granted
            queues.lost_slots[v] += 1
            queues.bits_lost[v] += granted
            queues.lost_j[v] += spent * config.slot_s
            window = feedback.unreported.shape[1]
            if window > 0:
                feedback.unreported[v, slot.number % window] = granted
            continue
        efficiency[0] += rate_bps
        left = log.bits_known[index, v]
        log.bits[index, v] = left if granted > left - LAST_BIT else granted
        emptied = emptied or log.bits[index, v] == queues.bits_left[v]
    return emptied
