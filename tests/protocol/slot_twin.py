"""A burst of slots in plain Python: the readable twin of `optimize/rat/burst.py`, which uses none of its code."""

from dataclasses import dataclass, field

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.optimize.rat.burst_state import QUEUE, Queues
from vefl_sim.optimize.rat.problem import RatAllocation, RatProblem, solve


@dataclass
class Sender:
    """One CV with bits to send."""

    snr_per_watt: float
    earliest_slot: int
    deadline_slot: int
    bits_left: float
    bits_drained: float = 0.0
    transmit_j: float = 0.0
    slots: int = 0
    snr_sum: float = 0.0
    lost_slots: int = 0
    bits_lost: float = 0.0
    lost_j: float = 0.0
    outages: dict[int, float] = field(default_factory=dict)  # slot -> bits of its lost grant


@dataclass
class PlainAccess:
    """What one slot of the twin has besides its fading, where the radio is not that of the paper."""

    symbols: tuple[int, ...] = (13,)  # uplink symbols of the slots of the TDD pattern; 13 are a full slot
    report_slots: int = 1
    grant_slots: int = 0
    known_gain: Floats | None = None  # SNR per watt as the gNB knows it; None: that of the slot
    prb_watts: Floats | None = None  # open-loop power of each sender on a pRB

    def share(self, slot: int) -> float:
        return self.symbols[slot % len(self.symbols)] / 13

    def slots_left(self, slot: int, deadline: int) -> int:
        return sum(self.symbols[later % len(self.symbols)] for later in range(slot, deadline)) // 13

    def known(self, slot: int, sender: Sender) -> float:
        """Bits left, without those lost since the last report that counts in this slot."""
        counted = range(-self.grant_slots - self.report_slots, slot - self.grant_slots + 1)
        reported = max(report for report in counted if report % self.report_slots == 0)
        known = sender.bits_left - sum(bits for lost, bits in sender.outages.items() if reported <= lost < slot)
        return known if known > 1e-6 else 0.0


@dataclass
class PlainMac:
    """The MAC of the twin, with the sums that β is computed from."""

    slot_s: float
    bandwidth_hz: float
    max_power_w: float
    tradeoff: float
    circuit_w: float
    method: str
    rate_sum: float = 0.0
    power_sum: float = 0.0
    first_beta: float = 0.0

    def run_slot(
        self, slot: int, fading: Floats, senders: list[Sender], access: PlainAccess | None = None
    ) -> dict[str, object]:
        """Schedule, allocate and send in one slot; returns what a log row says of it."""
        access = access or PlainAccess()
        known, share = [access.known(slot, sender) for sender in senders], access.share(slot)
        order = sorted(range(len(senders)), key=lambda v: (senders[v].deadline_slot, -known[v], v))
        rows = [v for v in order if known[v] > 0][: fading.shape[1]]
        bits_left = [sender.bits_left for sender in senders]
        bits, power, lost = np.zeros(len(senders)), np.zeros(len(senders)), np.zeros(len(senders))
        if not rows or not share:
            return {"power_w": power, "bits": bits, "bits_left": bits_left, "gap": float("nan"), "lost": lost}
        problem = self.problem(slot, fading, senders, rows, access)
        allocation = solve(problem, self.method)
        rates: list[float] = []
        self.power_sum += share * allocation.power_w.sum() + len(rows) * self.circuit_w
        for row, v in enumerate(rows):
            owned = [z for z in range(fading.shape[1]) if allocation.owner[z] == row]
            power[v] = share * sum(allocation.power_w[z] for z in owned)
            arrives = True
            if owned:
                sender = senders[v]
                snr = [allocation.power_w[z] * fading[v, z] * sender.snr_per_watt for z in owned]
                sender.slots += 1
                sender.snr_sum += np.mean(snr)
                sender.transmit_j += power[v] * self.slot_s
                granted = min(allocation.rate_bps[row] * self.slot_s * share, known[v])
                capacity = self.bandwidth_hz * sum(np.log2(1 + one) for one in snr)
                arrives = access.known_gain is None or allocation.rate_bps[row] <= capacity * (1 + 1e-9)
                if arrives:
                    bits[v] = granted
                    sender.bits_drained += granted
                    sender.bits_left = 0.0 if sender.bits_left - granted < 1e-6 else sender.bits_left - granted
                else:
                    lost[v] = sender.outages[slot] = allocation.rate_bps[row] * self.slot_s * share
                    sender.lost_slots += 1
                    sender.bits_lost += lost[v]
                    sender.lost_j += power[v] * self.slot_s
            rates.append(share * float(allocation.rate_bps[row]) if arrives else 0.0)
        self.rate_sum += sum(rates)
        gap = self.gap(problem, allocation)
        return {"power_w": power, "bits": bits, "bits_left": bits_left, "gap": gap, "lost": lost}

    def problem(
        self, slot: int, fading: Floats, senders: list[Sender], rows: list[int], access: PlainAccess
    ) -> RatProblem:
        """The RAT sub-problem of the slot, as docs/radio.md states it."""
        chosen, prbs = [senders[v] for v in rows], fading.shape[1]
        backlogged = sum(access.known(slot, sender) > 0 for sender in senders)
        count = min(1.0, prbs / backlogged)
        left_slots = [access.slots_left(slot, sender.deadline_slot) for sender in chosen]
        usable = [max(1, int(np.floor(count * slots + 1e-9))) for slots in left_slots]
        left = np.array([access.known(slot, sender) for sender in chosen])
        gain = np.array([fading[v] * senders[v].snr_per_watt for v in rows])
        return RatProblem(
            snr_per_watt=gain if access.known_gain is None else access.known_gain[rows],
            max_power_w=np.full(len(rows), self.max_power_w),
            bits_left=left,
            floor_bps=left / self.slot_s / np.array(usable),
            mean_bps=np.array([s.bits_drained / max(1, slot - s.earliest_slot) for s in chosen]) / self.slot_s,
            slot_s=self.slot_s * access.share(slot),
            bandwidth_hz=self.bandwidth_hz,
            tradeoff=self.tradeoff,
            efficiency=self.rate_sum / self.power_sum if self.power_sum > 0 else self.first_beta,
            prb_power_w=None if access.prb_watts is None else access.prb_watts[rows],
        )

    def gap(self, problem: RatProblem, allocation: RatAllocation) -> float:
        """(bound − objective)/Σ a·r, never negative; nan without a bound."""
        if allocation.status not in ("optimal", "gap"):
            return float("nan")
        worth = ((self.tradeoff + problem.slot_s * problem.bits_left) * allocation.rate_bps).sum()
        return max(0.0, allocation.bound - allocation.objective) / worth


def columns(senders: list[Sender], name: str) -> Floats | Ints:
    """One attribute of all senders, as an array."""
    return np.array([getattr(sender, name) for sender in senders])


def queues_of(senders: list[Sender]) -> Queues:
    """The senders as the kernel takes them."""
    return np.array([tuple(getattr(sender, name) for name in QUEUE.names or ()) for sender in senders], QUEUE)
