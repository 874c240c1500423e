"""What the server knows at the start of a round, and the worst case it plans with."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.clock import SlotGrid
from vefl_sim.learning.aggregation import mixed_shares
from vefl_sim.optimize.vefl.problem import VeflProblem
from vefl_sim.radio.link import Link
from vefl_sim.schemes.sla import Agreement, column

_NEVER = 10**9  # slots; an upload over a dead channel


@dataclass(frozen=True)
class Committed:
    """What orders of the same round have taken up already, in the worst case; nothing where a round has one plan."""

    cost: Floats | float = 0.0  # by each CV of the sighting
    energy_j: Floats | float = 0.0
    total_cost: float = 0.0  # by all


@dataclass(frozen=True)
class CoverageSnapshot:
    """The CVs that can be ordered, in ascending order of their number: all in coverage, or those that ask."""

    round: int
    time_ns: int
    cv: Ints
    distance_m: Floats
    sojourn_s: Floats  # bound
    snr_per_watt: Floats  # large scale, one antenna
    samples: Ints
    agreements: list[Agreement]
    success: Floats  # p̂_suc: the server's record of each CV
    others: int = 0  # more CVs in coverage, which share the channel and the money
    committed: Committed = Committed()
    horizon_ns: int | None = None  # what is ordered must be over by then; None: nothing ends soon

    @property
    def in_coverage(self) -> int:
        """V, the number of CVs in coverage."""
        return len(self.cv) + self.others


@dataclass(frozen=True)
class RoundConstants:
    """What is the same in every round."""

    grid: SlotGrid
    link: Link
    round_ns: int  # t_th
    budget: float  # Ξ
    payload_bits: int  # S
    bits_per_sample: int
    cpu_capacitance: float  # ζ
    min_iterations: int  # l_des
    max_iterations: int  # l_max
    max_selected: int  # N
    sojourn_weight: float  # λ̄
    share_among_selected: bool  # z̃
    upload_margin: float = 1.0  # factor on t̄_tx


@dataclass(frozen=True)
class Observation:
    """A sighting with its worst-case upload times."""

    snapshot: CoverageSnapshot
    constants: RoundConstants
    worst_slots: Ints  # t̄_tx
    window_slots: Ints  # ⌊min(t_th, t_soj)/κ⌋; whole slots of the grid, so one less for a start between two

    @property
    def cv(self) -> Ints:
        """CVs that can be ordered."""
        return self.snapshot.cv

    @property
    def train_limit_ns(self) -> Ints:
        """T_v = κ·(⌊min(t_th, t_soj)/κ⌋ − t̄_tx), on the slot grid; may be negative."""
        return (self.window_slots - self.worst_slots) * self.constants.grid.slot_ns

    @property
    def cycles(self) -> Floats:
        """c_v·D_v, CPU cycles of one local iteration."""
        data_bits = self.snapshot.samples * self.constants.bits_per_sample
        return column(self.snapshot.agreements, "cycles_per_bit") * data_bits

    @property
    def deadline_slot(self) -> Ints:
        """The slot at which the update should be through: end of the sojourn bound or of the round."""
        return self.constants.grid.ceil(self.snapshot.time_ns) + self.window_slots

    def mean_snr_db(self, row: int) -> float:
        """Without fading, all antennas combined, all power on one pRB, at the start of the round."""
        link = self.constants.link
        snr = link.max_power_w * link.antennas * float(self.snapshot.snr_per_watt[row])
        return 10 * math.log10(max(snr, 1e-30))

    def importance(self, sojourn_weight: float) -> Floats:
        """Shares of the data (0) and of the sojourn bounds (1), mixed: Θ_v of PDPC, p_v of FDPC."""
        samples = self.snapshot.samples.astype(np.float64)
        return mixed_shares(samples, self.snapshot.sojourn_s, sojourn_weight)

    def p_suc_of(self, cvs: Ints, kind: Literal["realized", "history"]) -> Floats:
        """What the aggregation divides by: 1 for an update that was received, or the CV's record so far."""
        return self.snapshot.success[np.searchsorted(self.cv, cvs)] if kind == "history" else np.ones(len(cvs))

    def problem(self, sojourn_weight: float | None = None, *, everybody: bool = False) -> VeflProblem:
        """The VEFL sub-problem of this round: PDPC's (iterPlusCpuFreqPD), or with `everybody` FDPC's.

        sojourn_weight: of the weights; `vefl.sojourn_weight` if it is not given.
        """
        constants, agreements = self.constants, self.snapshot.agreements
        return VeflProblem(
            weight=self.importance(constants.sojourn_weight if sojourn_weight is None else sojourn_weight),
            cycles=self.cycles,
            time_s=self.train_limit_ns / 1e9,
            tx_energy_j=constants.grid.slot_s * constants.link.max_power_w * self.worst_slots.astype(np.float64),
            energy_budget_j=column(agreements, "energy_budget_j") - self.snapshot.committed.energy_j,
            price_per_joule=column(agreements, "price_per_joule"),
            base_fee=column(agreements, "base_fee"),
            cpu_min_hz=column(agreements, "cpu_min_hz"),
            cpu_max_hz=column(agreements, "cpu_max_hz"),
            cpu_capacitance=constants.cpu_capacitance,
            budget=constants.budget,
            max_selected=constants.max_selected,
            min_iterations=constants.min_iterations,
            max_iterations=constants.max_iterations,
            everybody=everybody,
        )


def sojourn_ns(sojourn_s: float) -> int:
    """The bound on the clock; a CV that hardly moves stays for ever, which is some centuries here."""
    return int(min(sojourn_s * 1e9, 9e18))


def observe(snapshot: CoverageSnapshot, constants: RoundConstants) -> Observation:
    """Add the worst case: t̄_tx on the share z̃ of the pRBs (worstCaseTxTTIEstimate)."""
    cvs = snapshot.in_coverage
    sharing = min(cvs, constants.max_selected) if constants.share_among_selected else cvs
    prb_share = min(1.0, constants.link.prbs / max(1, sharing))
    bits = constants.upload_margin * constants.payload_bits  # the time to send them is proportional
    worst = constants.link.worst_case_slots(snapshot.snr_per_watt, bits, prb_share, constants.grid.slot_s)
    longest_ns = constants.round_ns if snapshot.horizon_ns is None else min(constants.round_ns, snapshot.horizon_ns)
    stay_ns = np.minimum(np.floor(snapshot.sojourn_s * 1e9), longest_ns).astype(np.int64)
    last_slot = (snapshot.time_ns + stay_ns) // constants.grid.slot_ns
    return Observation(
        snapshot=snapshot,
        constants=constants,
        worst_slots=np.minimum(worst, _NEVER).astype(np.int64),
        window_slots=np.maximum(last_slot - constants.grid.ceil(snapshot.time_ns), 0),
    )
