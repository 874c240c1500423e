"""The books of a burst of slots: what goes in, what each slot grants, and what arrives of it."""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.allocate import AllocationStatus, Found

LAST_BIT = 1e-6  # bits: a smaller rest is rounding, not data
ROUNDING = 1e-9  # share of the capacity by which a rate may be above it


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


class Air(NamedTuple):
    """How much of each slot is uplink, from the TDD pattern, which repeats from slot 0 on."""

    share: Floats  # of each slot of the burst: its uplink symbols over those of a full uplink slot; 0: downlink
    before: Ints  # uplink symbols of the pattern before each of its slots, and of the whole pattern at the end
    full: int  # data symbols of a full uplink slot


class Knowledge(NamedTuple):
    """What the gNB knows where it does not know the channel of the slot: measured gains, and reports of backlogs.

    A CV sends the bits of a lost grant again. The gNB knows of them from the CV's next report on.
    """

    gain: Floats  # SNR per watt as measured before; shape (slots, CVs, pRBs)
    report_slots: int  # from one report of the backlog to the next
    grant_slots: int  # from a report to the first slot in which it counts
    lost_slots: Ints  # of each CV: slots in which its grant was lost
    lost_bits: Floats  # bits of these grants
    lost_j: Floats  # energy of these slots
    unreported: Floats  # bits lost in the last slots, at the number of the slot modulo their count; shape (CVs, slots)


class Moment(NamedTuple):
    """A slot: its number, the share of it that is uplink, and its fading, shape (CVs, pRBs)."""

    slot: int
    share: float
    fading: Floats


class Log(NamedTuple):
    """The results of each slot; rows are slots, columns CVs. Powers and rates are means over the whole slot."""

    prbs: Ints  # 0: not scheduled
    power_w: Floats
    rate_bps: Floats
    bits_left: Floats  # at the start of the slot
    gap: Floats  # (bound − objective) / Σ a·r, nan where there is no bound; one column
    outcome: Ints  # AllocationStatus; one column
    owner: Ints  # column of the CV that owns the pRB, −1: no CV; columns are pRBs
    watts: Floats  # transmit power on the pRB while it is used; columns are pRBs
    bits_known: Floats  # backlog at the start of the slot as the gNB knows it
    bits_lost: Floats  # bits of a grant above the capacity, none of which arrives


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
        np.zeros(slots, np.int64), np.full((slots, prbs), -1), np.zeros((slots, prbs)), np.zeros(shape),
        np.zeros(shape),
    )  # fmt: skip


@kernel
def know_backlogs(slot, queues, knowledge, known):
    """Fill `known` with the backlogs that the gNB counts on: what is left, without lost bits not reported again yet.

    Reports are made at the start of the slots 0, n, 2n, …, and count for slots that begin g slots later or after.
    """
    for v in range(len(known)):
        known[v] = queues.bits_left[v]
    if knowledge is not None:
        window = knowledge.unreported.shape[1]
        reported = (slot - knowledge.grant_slots) // knowledge.report_slots * knowledge.report_slots
        for v in range(len(known)):
            hidden = 0.0
            for lost in range(reported, slot):
                hidden += knowledge.unreported[v, lost % window]
            known[v] = known[v] - hidden if known[v] - hidden > LAST_BIT else 0.0
            if window > 0:
                knowledge.unreported[v, slot % window] = 0.0  # room for what this slot may lose


@kernel
def idle(index, books):
    """Book a slot in which nothing is sent; returns False, as no queue will be empty."""
    books.log.outcome[index], books.log.gap[index] = AllocationStatus.POLICY, np.nan
    for v in range(len(books.last_bits)):
        books.log.bits_left[index, v], books.last_bits[v] = books.queues.bits_left[v], 0.0
    return False


@kernel
def settle(cell, index, grants, books, moment, knowledge):
    """Book the grants of slot `index`: log, efficiency, energy, bits; returns whether a queue will be empty.

    The bits stay in `books.last_bits` until the slot ends. A grant above the capacity of the slot is lost as a whole.
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
        owned, spent, snr, capacity = 0, 0.0, 0.0, 0.0
        for prb in range(len(owner)):
            if owner[prb] == row:
                gain = grants.gain[row, prb]
                if knowledge is not None:
                    gain = moment.fading[v, prb] * queues.snr_per_watt[v]
                    capacity += np.log1p(watts[prb] * gain) * cell.nats_hz
                log.owner[index, prb], log.watts[index, prb] = v, watts[prb]
                owned += 1
                spent += watts[prb]
                snr += watts[prb] * gain
        spent *= moment.share
        rate_bps = grants.rate_bps[row] * moment.share
        log.prbs[index, v], log.power_w[index, v], log.rate_bps[index, v] = owned, spent, rate_bps
        efficiency[1] += spent + cell.circuit_w
        if owned == 0:
            efficiency[0] += rate_bps
            continue
        queues.slots[v] += 1
        queues.snr_sum[v] += snr / owned
        queues.transmit_j[v] += spent * cell.slot_s
        granted = rate_bps * cell.slot_s
        if knowledge is not None and grants.rate_bps[row] > capacity * (1 + ROUNDING):
            log.bits_lost[index, v] = granted
            lose(v, moment.slot, granted, spent * cell.slot_s, knowledge)
            continue
        efficiency[0] += rate_bps
        books.last_bits[v] = arriving_bits(granted, log.bits_known[index, v])
        emptied = emptied or books.last_bits[v] == queues.bits_left[v]
    return emptied


@kernel
def lose(v, slot, bits, joules, knowledge):
    """Book a grant that is lost: its energy is spent, and its bits stay in the CV's buffer."""
    knowledge.lost_slots[v] += 1
    knowledge.lost_bits[v] += bits
    knowledge.lost_j[v] += joules
    window = knowledge.unreported.shape[1]
    if window > 0:
        knowledge.unreported[v, slot % window] = bits


@kernel
def arriving_bits(granted, left):
    """The bits that arrive of those granted: all of them, and a rest of less than LAST_BIT with them."""
    return left if granted > left - LAST_BIT else granted
