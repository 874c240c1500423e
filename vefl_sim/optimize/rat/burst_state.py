"""The data of a burst of slots: what its slots are decided from, what they grant, and what they change.

The kernels of numba read these types when they are compiled: as this file names numba, a change compiles them again.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.optimize.rat.problem import Solution

LAST_BIT = 1e-6  # bits: a smaller rest is rounding, not data
QUEUE = np.dtype(
    [
        ("earliest_slot", np.int64),  # first slot in which the CV may be scheduled
        ("deadline_slot", np.int64),
        ("bits_left", np.float64),  # Q_v
        ("bits_drained", np.float64),  # received by the gNB
        ("transmit_j", np.float64),
        ("slots", np.int64),  # in which the CV had a pRB
        ("snr_sum", np.float64),  # linear SNR, mean over its pRBs, summed over these slots
        ("lost_slots", np.int64),  # slots of these whose grant was above the capacity, so that nothing arrived
        ("bits_lost", np.float64),  # of these grants; they stay in bits_left, and are sent again
        ("lost_j", np.float64),  # energy of these slots
    ],
    align=True,
)
"""The queue of one CV, from its order on."""
Queues = NDArray[np.void]  # of dtype QUEUE


class MacConfig(NamedTuple):
    """Values that are the same in every slot."""

    method: int  # AllocationMethod; −1: a policy in Python allocates
    slot_s: float  # κ
    nats_hz: float  # W′ = ω(1−υ)/ln 2
    max_power_w: float
    tradeoff: float  # C
    circuit_w: float  # added to the power of every scheduled CV, in β only


class BurstChannel(NamedTuple):
    """The channel in the slots of a burst, which begins with `first_slot`."""

    first_slot: int
    snr_per_watt: Floats  # of each CV, without fast fading
    fading: Floats  # fading gains; shape (slots, CVs, pRBs)


class UplinkPattern(NamedTuple):
    """How much of each slot is uplink, from the TDD pattern, which repeats from slot 0 on."""

    share: Floats  # of each slot of the burst: its uplink symbols over those of a full uplink slot; 0: downlink
    before: Ints  # uplink symbols of the pattern before each of its slots, and of the whole pattern at the end
    full: int  # data symbols of a full uplink slot


class Feedback(NamedTuple):
    """What the gNB knows if it does not know the channel of the slot: older CSI, and buffer status reports.

    A CV sends the bits of a lost grant again. The gNB knows of them from the CV's next report on.
    """

    gain: Floats  # SNR per watt as measured before; shape (slots, CVs, pRBs)
    report_slots: int  # from one report of the backlog to the next
    grant_slots: int  # from a report to the first slot in which it counts
    unreported: Floats  # bits lost in the last slots, at the number of the slot modulo their count; shape (CVs, slots)


class Slot(NamedTuple):
    """A slot of a burst."""

    row: int  # of the slot in the log
    number: int  # since the start of the run
    share: float  # of the slot that is uplink
    snr_per_watt: Floats  # of each CV, without fast fading
    fading: Floats  # shape (CVs, pRBs)


class SlotLog(NamedTuple):
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
    bits: Floats  # bits that arrive when the slot ends


class BurstState(NamedTuple):
    """What the slots of a burst change."""

    queues: Queues  # of the CVs that may send, in ascending order of their number
    efficiency: Floats  # Σ rate and Σ power of the round, and its first β (barBetaDink)
    log: SlotLog


class SlotDemand(NamedTuple):
    """What the scheduled CVs of a slot ask for, as far as the gNB knows; rows are in scheduling order."""

    gain: Floats  # SNR per watt; shape (rows, pRBs)
    bits: Floats  # backlog
    slots: Ints  # before its deadline, in which the CV can expect to be scheduled
    mean: Floats  # bits drained per slot since the first one in which it might be scheduled


class Grants(NamedTuple):
    """What the scheduled CVs of one slot were granted; rows are in scheduling order."""

    cv: Ints  # column of the CV in the log
    gain: Floats  # SNR per watt; shape (rows, pRBs)
    owner: Ints  # row of the owner of each pRB, −1: none
    watts: Floats  # transmit power on each pRB
    rate_bps: Floats  # of each row
    weighted_rate: float  # Σ a·r
    solution: Solution  # in the unit of `weighted_rate`


def new_log(slots: int, cvs: int, prbs: int) -> SlotLog:
    """An empty log for a burst of this size."""
    shape = (slots, cvs)
    return SlotLog(
        np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(slots),
        np.zeros(slots, np.int64), np.full((slots, prbs), -1), np.zeros((slots, prbs)), np.zeros(shape),
        np.zeros(shape), np.zeros(shape),
    )  # fmt: skip
