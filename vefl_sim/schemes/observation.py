"""What the server observes when it plans, and the worst-case upload times that the plan is based on."""

import math
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.clock import SlotGrid
from vefl_sim.core.state import NOT_SAVED
from vefl_sim.optimize.vefl.problem import VeflProblem
from vefl_sim.radio.access import IMMEDIATE, Access
from vefl_sim.radio.link import Link, worst_case_slots
from vefl_sim.schemes.sla import Agreement, column

_NEVER = 10**9  # slots; stands for an upload that never ends because the channel is too bad


@dataclass(frozen=True)
class Committed:
    """Worst-case cost and energy of earlier orders of the same window; zero with rounds, where a round has one plan."""

    cost: Floats | float = 0.0  # of each CV of the snapshot
    energy_j: Floats | float = 0.0  # of each CV of the snapshot
    total_cost: float = 0.0  # of all CVs


@dataclass(frozen=True)
class LastRound:
    """What the server knows of the rounds before, at the start of a round."""

    accuracy: float = 0.0  # of the last evaluation; 0 before the first, and without classes
    loss: float | None = None  # of the last evaluation
    paid: float = 0.0  # to the CVs, in the last round
    ordered: int = 0  # in the last round
    delivered: int = 0  # of these orders

    @property
    def delivered_share(self) -> float:
        """Share of the orders of the last round that were delivered; 1 if there were none."""
        return self.delivered / self.ordered if self.ordered else 1.0


@dataclass(frozen=True)
class CoverageSnapshot:
    """The CVs that can get an order, in ascending order: all in coverage, or without rounds those that request one."""

    round: int
    time_ns: int
    cv: Ints
    distance_m: Floats
    sojourn_s: Floats  # sojourn bound
    snr_per_watt: Floats  # large-scale SNR per watt of transmit power, at one antenna
    worst_rate_bps: Floats  # mean rate with P_max on the worst pRB, as the channel states it
    samples: Ints  # D_v
    agreements: list[Agreement]
    success: Floats  # p̂_suc: success rate of each CV so far
    others: int = 0  # number of further CVs in coverage, which share the channel and the budget
    committed: Committed = Committed()
    horizon_ns: int | None = None  # time left in the run, which orders must not exceed; None: no limit
    downlink_ns: int = 0  # time until all of these CVs would have the model
    last: LastRound = LastRound()

    @property
    def in_coverage(self) -> int:
        """V, the number of CVs in coverage."""
        return len(self.cv) + self.others


@dataclass(frozen=True)
class RoundConstants:
    """Parameters of the server that are the same in every round."""

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
    share_among_selected: bool  # z̃ divides the pRBs among at most N CVs, not among all in coverage
    upload_margin: float = 1.0  # factor on t̄_tx
    access: Access = IMMEDIATE


@dataclass(frozen=True)
class Observation:
    """A snapshot of the CVs with their worst-case upload times."""

    snapshot: CoverageSnapshot
    constants: RoundConstants = field(metadata=NOT_SAVED)
    worst_slots: Ints  # t̄_tx, in full uplink slots
    window_slots: Ints  # ⌊min(t_th, t_soj)/κ⌋; whole slots of the grid, so one less if the time is between slots

    @property
    def cv(self) -> Ints:
        """Numbers of the CVs that can get an order."""
        return self.snapshot.cv

    @property
    def train_limit_ns(self) -> Ints:
        """T_v = κ·(⌊min(t_th, t_soj)/κ⌋ − t̄_tx), on the slot grid; may be negative.

        With a TDD pattern, t̄_tx uplink slots take longer; a report, a grant and the model may have to be waited for.
        """
        grid = self.constants.grid
        latest = self.constants.access.latest_offer(self.deadline_slot, self.worst_slots)
        limit_ns: Ints = (latest - grid.ceil(self.snapshot.time_ns)) * grid.slot_ns - self.snapshot.downlink_ns
        return limit_ns

    @property
    def worst_tx_j(self) -> Floats:
        """Energy of t̄_tx slots on one pRB: with P_max, or with the power of the open loop."""
        constants, slots = self.constants, self.worst_slots.astype(np.float64)
        energy_j: Floats = constants.grid.slot_s * constants.link.power_w(self.snapshot.snr_per_watt) * slots
        return energy_j

    @property
    def cycles(self) -> Floats:
        """c_v·D_v, CPU cycles of one local iteration."""
        data_bits = self.snapshot.samples * self.constants.bits_per_sample
        return column(self.snapshot.agreements, "cycles_per_bit") * data_bits

    @property
    def deadline_slot(self) -> Ints:
        """The slot by which the update should be received: end of the sojourn bound or of the round."""
        return self.constants.grid.ceil(self.snapshot.time_ns) + self.window_slots

    def mean_snr_db(self, row: int) -> float:
        """SNR of a CV in dB at the time of the snapshot: no fading, all antennas combined, full power on one pRB."""
        link = self.constants.link
        snr = link.max_power_w * link.antennas * float(self.snapshot.snr_per_watt[row])
        return 10 * math.log10(max(snr, 1e-30))

    def importance(self, sojourn_weight: float) -> Floats:
        """Mean of the shares in the data (weight 0) and in the sojourn bounds (weight 1).

        Θ_v of PDPC with λ̄ (thetaV), p_v of FDPC with λ (p_V_Mobility).
        """
        samples = self.snapshot.samples.astype(np.float64)
        return shares((1 - sojourn_weight) * shares(samples) + sojourn_weight * shares(self.snapshot.sojourn_s))

    def p_suc_of(self, cvs: Ints, kind: Literal["realized", "history"]) -> Floats:
        """p_suc that the aggregation divides by: "realized": 1 for a received update; "history": the success rate."""
        return self.snapshot.success[np.searchsorted(self.cv, cvs)] if kind == "history" else np.ones(len(cvs))

    def with_(self, *, budget: float | None = None, selected: int | None = None) -> Self:
        """The same observation with a smaller budget Ξ, or fewer CVs to select: what a scheme gives to another one.

        The worst-case upload times stay as they are; with fewer CVs they are longer than necessary, never too short.
        """
        constants = self.constants
        for name, value, limit in (
            ("budget", budget, constants.budget),
            ("selected", selected, constants.max_selected),
        ):
            if value is not None and not 0 <= value <= limit:
                raise ValueError(f"with_({name}={value!r}): it must be from 0 to {limit!r}, the limit of this round.")
        return self.at_most(constants.budget if budget is None else budget, selected)

    def at_most(self, budget: float, selected: int | None = None) -> Self:
        """The same observation with at most this budget Ξ, and at most this number of CVs to select (None: as it is).

        Built-in schemes plan within the limits of the experiment that they were made from, which a scheme that uses
        them may have lowered.
        """
        constants = self.constants
        lower = replace(
            constants,
            budget=min(budget, constants.budget),
            max_selected=constants.max_selected if selected is None else min(selected, constants.max_selected),
        )
        return replace(self, constants=lower)

    def problem(self, sojourn_weight: float | None = None, *, everybody: bool = False) -> VeflProblem:
        """The VEFL sub-problem of this round: PDPC's (iterPlusCpuFreqPD), or with `everybody` FDPC's.

        sojourn_weight: λ̄ of the weights; `vefl.sojourn_weight` if None.
        """
        constants, agreements = self.constants, self.snapshot.agreements
        return VeflProblem(
            weight=self.importance(constants.sojourn_weight if sojourn_weight is None else sojourn_weight),
            cycles=self.cycles,
            time_s=self.train_limit_ns / 1e9,
            tx_energy_j=self.worst_tx_j,
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


def shares(amount: Floats) -> Floats:
    """Each amount as a share of the total; equal shares if the total is zero."""
    total = float(amount.sum())
    return amount / total if total > 0 else np.full(len(amount), 1 / max(1, len(amount)))


def sojourn_ns(sojourn_s: float) -> int:
    """The sojourn bound in nanoseconds; unbounded sojourns become 9e18 ns, about 285 years."""
    return int(min(sojourn_s * 1e9, 9e18))


def observe(snapshot: CoverageSnapshot, constants: RoundConstants) -> Observation:
    """Add the worst-case upload times t̄_tx, with a share z̃ of the pRBs (worstCaseTxTTIEstimate)."""
    cvs = snapshot.in_coverage
    sharing = min(cvs, constants.max_selected) if constants.share_among_selected else cvs
    prb_share = min(1.0, constants.link.prbs / max(1, sharing))
    bits = constants.upload_margin * constants.payload_bits  # scales t̄_tx, which is proportional to the bits
    worst = worst_case_slots(snapshot.worst_rate_bps, bits, prb_share, constants.grid.slot_s)
    longest_ns = constants.round_ns if snapshot.horizon_ns is None else min(constants.round_ns, snapshot.horizon_ns)
    stay_ns = np.minimum(np.floor(snapshot.sojourn_s * 1e9), longest_ns).astype(np.int64)
    last_slot = (snapshot.time_ns + stay_ns) // constants.grid.slot_ns
    return Observation(
        snapshot=snapshot,
        constants=constants,
        worst_slots=np.minimum(worst, _NEVER).astype(np.int64),
        window_slots=np.maximum(last_slot - constants.grid.ceil(snapshot.time_ns), 0),
    )
