"""The RAT sub-problem of one slot: which CV gets which pRB, and at what power.

Minimise U = C·β·ΣP − Σ r·(C + κQ) (fdRATProbTransform1) over owners and powers, subject to C7–C12, the rate floors
(UlReqTxBits) and r ≤ Q/κ. We maximise −U. If the floors cannot all be met, the total shortfall is minimised.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, Protocol

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.kinds import RAT_METHODS
from vefl_sim.experiment.plugins import load_part

RatStatus = Literal["optimal", "gap", "infeasible_floors", "policy"]

EXACT_PRBS = 12  # 3^Z steps per CV: beyond this "exact" would take milliseconds
MET = 1e-9  # share of its floor that a CV may miss by rounding
NOTHING = 1e-300  # smaller gains (1/W), powers (W) and rates (nats) count as 0: 1/g overflows, and digits are lost
_PER_NAT = 1 / float(np.log(2))


@dataclass(frozen=True)
class RatProblem:
    """The allocation problem of one slot: V scheduled CVs in scheduling order, Z pRBs."""

    snr_per_watt: Floats  # ‖h‖²/(ως²), shape (V, Z)
    max_power_w: Floats  # P_max, shape (V,)
    bits_left: Floats  # Q, shape (V,)
    floor_bps: Floats  # least rate that keeps the deadline, at most Q/κ; shape (V,)
    mean_bps: Floats  # mean rate of each CV over its slots so far; shape (V,)
    slot_s: float  # κ
    bandwidth_hz: float  # ω(1−υ)
    tradeoff: float  # C, in bit·s
    efficiency: float  # β(k, t), in bit/J
    prb_power_w: Floats | None = None  # a CV with n pRBs sends with min(this, P_max/n) on each; None: powers are chosen
    cv: Ints | None = None  # numbers of the CVs, shape (V,); None: the problem does not come from a run
    slot: int = 0  # number of the slot since the start of the run
    round: int = 0  # k

    def __post_init__(self) -> None:
        cvs, prbs = self.snr_per_watt.shape
        for name in ("max_power_w", "bits_left", "floor_bps", "mean_bps", "prb_power_w"):
            values = getattr(self, name)
            if values is not None and values.shape != (cvs,):
                raise ValueError(f"{name} must have one entry per CV")
        if not cvs or not prbs or cvs > prbs:
            raise ValueError(f"between 1 and {prbs} CVs can share {prbs} pRBs, not {cvs}")
        if not (self.slot_s > 0 and self.bandwidth_hz > 0):
            raise ValueError("slot_s and bandwidth_hz must be positive")
        for name, value in vars(self).items():
            if value is not None and not np.all((np.asarray(value) >= 0) & np.isfinite(value)):
                raise ValueError(f"{name} must be finite and not negative")
        if self._overflows():
            raise ValueError("the numbers of this problem are too large: its rates or its objective would overflow")

    def _overflows(self) -> bool:
        """Whether an SNR, a sum of rates or the objective leaves the range of double precision."""
        with np.errstate(all="ignore"):
            scaled = self.scaled
            snr = scaled.gain.max(axis=1) * scaled.power
            most = scaled.price * scaled.power.sum() + 1e3 * scaled.gain.size  # weights are ≤ 1, and ln(1 + Γ) < 1e3
            totals = snr.sum(), scaled.cap.sum(), scaled.floor.sum(), most * self.largest_weight * self.nats_hz
        return not np.all(np.isfinite(totals))

    @property
    def nats_hz(self) -> float:
        """W′ = ω(1−υ)/ln 2: rates in bit/s are W′ times rates in nats."""
        return self.bandwidth_hz * _PER_NAT

    @cached_property
    def largest_weight(self) -> float:
        """The largest a_v = C + κQ_v, the unit of the objective in the compiled kernels; 1 if all count as none."""
        largest = self.tradeoff + self.slot_s * float(self.bits_left.max())
        return largest if largest > NOTHING else 1.0

    @cached_property
    def scaled(self) -> "SlotProblem":
        """The same problem in the units of the compiled kernels."""
        unit = self.largest_weight
        return SlotProblem(
            gain=_above_nothing(self.snr_per_watt),
            weight=_above_nothing((self.tradeoff + self.slot_s * self.bits_left) / unit),
            price=self.tradeoff / unit * self.efficiency / self.nats_hz,
            power=_above_nothing(self.max_power_w),
            floor=_above_nothing(self.floor_bps / self.nats_hz),
            cap=_above_nothing(self.bits_left / self.slot_s / self.nats_hz),
            mean=self.mean_bps,
        )


def _above_nothing(values: Floats) -> Floats:
    return np.where(values > NOTHING, values, 0.0)


class SlotProblem(NamedTuple):
    """The problem in kernel units, rates in nats per W′ = ω(1−υ)/ln 2: maximise Σ a·r − λ·ΣP.

    Weights are relative to the largest, so that no product of them overflows, however large C is.
    """

    gain: Floats  # g, in 1/W; shape (V, Z)
    weight: Floats  # a_v = C + κQ_v, over the largest of them
    price: float  # λ = C·β/W′, over the same
    power: Floats  # P_max, in W
    floor: Floats  # least rate
    cap: Floats  # rate that sends all bits left
    mean: Floats  # mean rate so far, in any unit; only proportional fairness uses it


class Allocation(NamedTuple):
    """The arrays that a kernel fills for a `SlotProblem`."""

    owner: Ints  # row of the CV that owns the pRB; shape (Z,)
    watts: Floats  # shape (Z,)
    rate: Floats  # in nats; shape (V,)


class Solution(NamedTuple):
    """What is known of the allocation that a kernel has filled."""

    objective: float  # Σ a·r − λ·ΣP
    bound: float  # on the objective of all allocations that meet the floors; nan if none is computed
    status: int  # AllocationStatus (allocate.py)


def new_allocation(cvs: int, prbs: int) -> Allocation:
    """An allocation of nothing."""
    return Allocation(np.zeros(prbs, np.int64), np.zeros(prbs), np.zeros(cvs))


@dataclass(frozen=True)
class RatAllocation:
    """The allocation of one slot. A pRB has one owner (C7), so its power needs no second index."""

    owner: Ints  # row of the CV that owns the pRB; shape (Z,)
    power_w: Floats  # on each pRB, shape (Z,)
    rate_bps: Floats  # of each CV, at most Q/κ; shape (V,)
    objective: float  # −U
    bound: float  # no allocation that meets the floors has a larger objective; nan where none is computed
    status: RatStatus  # "infeasible_floors": it misses a floor; from an exact method, a proof that all do


class RatPolicy(Protocol):
    """A function that allocates the pRBs and powers of one slot."""

    def __call__(self, problem: RatProblem) -> RatAllocation:
        """Allocate the pRBs of one slot."""
        ...


def solve(problem: RatProblem, method: str = "auto") -> RatAllocation:
    """Allocate the pRBs and powers of one slot with the named method."""
    if method not in RAT_METHODS:
        raise ValueError(f"unknown method {method!r}; use one of {', '.join(RAT_METHODS)}")
    code = load_part("rat.method", method).code
    if code is None:
        from vefl_sim.optimize.rat.sca import algorithm4

        return algorithm4(problem, perspective=method == "sca-perspective")
    cvs, prbs = problem.snr_per_watt.shape
    if method == "exact" and prbs > EXACT_PRBS:
        raise ValueError(f"method 'exact' takes at most {EXACT_PRBS} pRBs, not {prbs}: use 'auto' or 'large'")
    from vefl_sim.optimize.rat.allocate import AllocationStatus, allocate, allocate_fixed, needs_large  # imports numba

    allocation = new_allocation(cvs, prbs)
    if problem.prb_power_w is None:
        solution = allocate(needs_large(code, prbs), int(code), problem.scaled, allocation)
    else:
        solution = allocate_fixed(int(code), problem.scaled, problem.prb_power_w, np.arange(cvs), allocation)
    unit = problem.nats_hz * problem.largest_weight
    return RatAllocation(
        owner=allocation.owner,
        power_w=allocation.watts,
        rate_bps=allocation.rate * problem.nats_hz,
        objective=solution.objective * unit,
        bound=solution.bound * unit,
        status=AllocationStatus(solution.status).name.lower(),  # type: ignore[arg-type]
    )
