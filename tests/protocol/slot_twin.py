"""A burst of slots in plain Python: the readable twin of `optimize/rat/burst.py`, which uses none of its code."""

from dataclasses import dataclass

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
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


@dataclass
class PlainCell:
    """The cell of the twin, with the sums that β is computed from."""

    slot_s: float
    bandwidth_hz: float
    max_power_w: float
    tradeoff: float
    circuit_w: float
    method: str
    rate_sum: float = 0.0
    power_sum: float = 0.0
    first_beta: float = 0.0

    def run_slot(self, slot: int, fading: Floats, senders: list[Sender]) -> dict[str, object]:
        """Schedule, allocate and send in one slot; returns what a log row says of it."""
        order = sorted(range(len(senders)), key=lambda v: (senders[v].deadline_slot, -senders[v].bits_left, v))
        rows = order[: fading.shape[1]]
        problem = self.problem(slot, fading, senders, rows)
        allocation = solve(problem, self.method)
        bits_left = [sender.bits_left for sender in senders]
        self.rate_sum += sum(allocation.rate_bps.tolist())
        self.power_sum += allocation.power_w.sum() + len(rows) * self.circuit_w
        bits, power = np.zeros(len(senders)), np.zeros(len(senders))
        for row, v in enumerate(rows):
            owned = [z for z in range(fading.shape[1]) if allocation.owner[z] == row]
            power[v] = sum(allocation.power_w[z] for z in owned)
            if owned:
                sender = senders[v]
                sender.slots += 1
                sender.snr_sum += np.mean([allocation.power_w[z] * problem.snr_per_watt[row, z] for z in owned])
                sender.transmit_j += power[v] * self.slot_s
                bits[v] = min(allocation.rate_bps[row] * self.slot_s, sender.bits_left)
                sender.bits_drained += bits[v]
                sender.bits_left = 0.0 if sender.bits_left - bits[v] < 1e-6 else sender.bits_left - bits[v]
        return {"power_w": power, "bits": bits, "bits_left": bits_left, "gap": self.gap(problem, allocation)}

    def problem(self, slot: int, fading: Floats, senders: list[Sender], rows: list[int]) -> RatProblem:
        """The RAT sub-problem of the slot, as docs/radio.md states it."""
        chosen, prbs = [senders[v] for v in rows], fading.shape[1]
        share = min(1.0, prbs / len(senders))
        usable = [max(1, int(np.floor(share * (sender.deadline_slot - slot) + 1e-9))) for sender in chosen]
        left = np.array([sender.bits_left for sender in chosen])
        return RatProblem(
            snr_per_watt=np.array([fading[v] * senders[v].snr_per_watt for v in rows]),
            max_power_w=np.full(len(rows), self.max_power_w),
            bits_left=left,
            floor_bps=left / self.slot_s / np.array(usable),
            mean_bps=np.array([s.bits_drained / max(1, slot - s.earliest_slot) for s in chosen]) / self.slot_s,
            slot_s=self.slot_s,
            bandwidth_hz=self.bandwidth_hz,
            tradeoff=self.tradeoff,
            efficiency=self.rate_sum / self.power_sum if self.power_sum > 0 else self.first_beta,
        )

    def gap(self, problem: RatProblem, allocation: RatAllocation) -> float:
        """(bound − objective)/Σ a·r, never negative; nan without a bound."""
        if allocation.status not in ("optimal", "gap"):
            return float("nan")
        worth = ((self.tradeoff + self.slot_s * problem.bits_left) * allocation.rate_bps).sum()
        return max(0.0, allocation.bound - allocation.objective) / worth


def columns(senders: list[Sender], name: str) -> Floats | Ints:
    """One attribute of all senders, as an array."""
    return np.array([getattr(sender, name) for sender in senders])
