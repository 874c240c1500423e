"""Run many slots in one call: schedule, allocate and send, until a buffer is empty or something may have changed.

The MAC runs a single slot and 64 slots with this same kernel, so a burst equals single slots bit for bit.
"""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.kernel import kernel
from vefl_sim.optimize.rat.allocate import AllocationStatus, allocate

LAST_BIT = 1e-6  # bits: a smaller rest is rounding, not data


class CellConstants(NamedTuple):
    """Values that are the same in every slot."""

    method: int  # AllocationMethod
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


def new_log(slots: int, cvs: int, prbs: int) -> Log:
    """An empty log for a burst of this size."""
    shape = (slots, cvs)
    return Log(
        np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(slots),
        np.zeros(slots, np.int64), np.full((slots, prbs), -1), np.zeros((slots, prbs)),
    )  # fmt: skip


@kernel
def run_slots(with_large, cell, first_slot, fading, queues, efficiency, log, last_bits):
    """Run up to len(fading) slots; returns how many were run.

    `queues` are updated for all of these slots except for the bits of the last one, which arrive when it ends:
    those are returned in `last_bits`. `efficiency` = [Σ rate, Σ power, first β] of this round (barBetaDink);
    `with_large` as for `allocate`.
    """
    count, cvs, prbs = fading.shape
    scheduled = min(cvs, prbs)
    gain, weight, cap = np.empty((scheduled, prbs)), np.empty(scheduled), np.empty(scheduled)
    floor, mean, power = np.empty(scheduled), np.empty(scheduled), np.full(scheduled, cell.max_power_w)
    owner, watts, rate = np.empty(prbs, np.int64), np.empty(prbs), np.empty(scheduled)
    for index in range(count):
        slot = first_slot + index
        order = _edf(queues.deadline_slot, queues.bits_left)
        beta = efficiency[0] / efficiency[1] if efficiency[1] > 0 else efficiency[2]
        for row in range(scheduled):
            v = order[row]
            left = queues.bits_left[v]
            gain[row] = fading[index, v] * queues.snr_per_watt[v]
            weight[row] = cell.tradeoff + cell.slot_s * left
            cap[row] = left / cell.slot_s / cell.nats_hz
            floor[row] = cap[row] / slots_to_count_on(queues.deadline_slot[v] - slot, cvs, prbs)
            mean[row] = queues.bits_drained[v] / max(1, slot - queues.earliest_slot[v])
        price = cell.tradeoff * beta / cell.nats_hz
        objective, bound, outcome = allocate(
            with_large, cell.method, gain, weight, price, power, floor, cap, mean, owner, watts, rate
        )
        log.outcome[index] = outcome
        certified = outcome == AllocationStatus.OPTIMAL or outcome == AllocationStatus.GAP
        worth = max((weight * rate).sum(), 1e-300)
        log.gap[index] = max(0.0, bound - objective) / worth if certified else np.nan
        log.bits_left[index] = queues.bits_left
        for prb in range(prbs):
            if owner[prb] >= 0:
                log.owner[index, prb], log.watts[index, prb] = order[owner[prb]], watts[prb]
        last_bits[:] = 0.0
        emptied = False
        for row in range(scheduled):
            v = order[row]
            owned, spent, snr = 0, 0.0, 0.0
            for prb in range(prbs):
                if owner[prb] == row:
                    owned += 1
                    spent += watts[prb]
                    snr += watts[prb] * gain[row, prb]
            bits_per_s = rate[row] * cell.nats_hz
            log.prbs[index, v], log.power_w[index, v], log.rate_bps[index, v] = owned, spent, bits_per_s
            efficiency[0] += bits_per_s
            efficiency[1] += spent + cell.circuit_w
            if owned == 0:
                continue
            queues.slots[v] += 1
            queues.snr_sum[v] += snr / owned
            queues.transmit_j[v] += spent * cell.slot_s
            bits = bits_per_s * cell.slot_s
            last_bits[v] = queues.bits_left[v] if bits > queues.bits_left[v] - LAST_BIT else bits
            emptied = emptied or last_bits[v] == queues.bits_left[v]
        if emptied or index == count - 1:
            return index + 1
        for v in range(cvs):
            queues.bits_drained[v] += last_bits[v]
            queues.bits_left[v] -= last_bits[v]
    return count


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
