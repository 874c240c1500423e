"""The RAT sub-problem of one slot: who gets which pRB, and at what power.

Minimise U = C·β·ΣP − Σ r·(C + κQ) (fdRATProbTransform1) over owners and powers, subject to C7–C12, the rate floors
(UlReqTxBits) and r ≤ Q/κ. We maximise −U. Floors that cannot all be met are missed by the least total.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

import numpy as np

from vefl_sim.core.arrays import Floats, Ints

RatStatus = Literal["optimal", "gap", "infeasible_floors", "policy"]

EXACT_PRBS = 12  # 3^Z steps per CV: beyond this "exact" would take milliseconds
_PER_NAT = 1 / float(np.log(2))


@dataclass(frozen=True)
class RatProblem:
    """One slot: V scheduled CVs in scheduling order, Z pRBs."""

    snr_per_watt: Floats  # ‖h‖²/(ως²), shape (V, Z)
    max_power_w: Floats  # P_max, shape (V,)
    bits_left: Floats  # Q, shape (V,)
    floor_bps: Floats  # least rate that keeps the deadline, at most Q/κ; shape (V,)
    mean_bps: Floats  # what each CV got so far, on average over its slots; shape (V,)
    slot_s: float  # κ
    bandwidth_hz: float  # ω(1−υ)
    tradeoff: float  # C, in bit·s
    efficiency: float  # β(k, t), in bit/J

    def __post_init__(self) -> None:
        cvs, prbs = self.snr_per_watt.shape
        for name in ("max_power_w", "bits_left", "floor_bps", "mean_bps"):
            if getattr(self, name).shape != (cvs,):
                raise ValueError(f"{name} must have one entry per CV")
        if not cvs or not prbs or cvs > prbs:
            raise ValueError(f"between 1 and {prbs} CVs can share {prbs} pRBs, not {cvs}")
        if not (self.slot_s > 0 and self.bandwidth_hz > 0):
            raise ValueError("slot_s and bandwidth_hz must be positive")
        for name, value in vars(self).items():
            if not np.all((np.asarray(value) >= 0) & np.isfinite(value)):
                raise ValueError(f"{name} must be finite and not negative")

    @property
    def scaled(self) -> "Scaled":
        """The same problem in the units of the kernels."""
        nats = self.bandwidth_hz * _PER_NAT
        return Scaled(
            gain=self.snr_per_watt,
            weight=self.tradeoff + self.slot_s * self.bits_left,
            price=self.tradeoff * self.efficiency / nats,
            power=self.max_power_w,
            floor=self.floor_bps / nats,
            cap=self.bits_left / self.slot_s / nats,
        )


@dataclass(frozen=True)
class Scaled:
    """Rates in nats per W′ = ω(1−υ)/ln 2: maximise Σ a·r − λ·ΣP."""

    gain: Floats  # g, in 1/W; shape (V, Z)
    weight: Floats  # a_v = C + κQ_v
    price: float  # λ = C·β/W′
    power: Floats
    floor: Floats
    cap: Floats


@dataclass(frozen=True)
class RatAllocation:
    """The answer. A pRB has one owner (C7), so its power needs no second index."""

    owner: Ints  # row of the CV that owns the pRB; shape (Z,)
    power_w: Floats  # on each pRB, shape (Z,)
    rate_bps: Floats  # of each CV, at most Q/κ; shape (V,)
    objective: float  # −U
    bound: float  # no allocation that meets the floors has a larger objective; nan where none is computed
    status: RatStatus  # "infeasible_floors": this allocation misses a floor; a proof that all must, if it is exact


class RatPolicy(Protocol):
    """Anything that allocates a slot."""

    def __call__(self, problem: RatProblem) -> RatAllocation:
        """Allocate the pRBs of one slot."""
        ...


METHODS = ("auto", "exact", "assignment", "large", "equal", "max-snr", "proportional-fair")
"""Methods of our own that run in compiled code, slot after slot."""

REFERENCES = ("sca", "sca-perspective")
"""The paper's Algorithm 4 by CVXPY: for comparison, a few slots per second."""


def solve(problem: RatProblem, method: str = "auto") -> RatAllocation:
    """Allocate one slot."""
    if method in REFERENCES:
        from vefl_sim.optimize.rat.sca import algorithm4

        return algorithm4(problem, perspective=method == "sca-perspective")
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; there are {', '.join((*METHODS, *REFERENCES))}")
    cvs, prbs = problem.snr_per_watt.shape
    if method == "exact" and prbs > EXACT_PRBS:
        raise ValueError(f"method 'exact' takes at most {EXACT_PRBS} pRBs, not {prbs}")
    kernel, needs_large, codes, statuses = _compiled()
    scaled = problem.scaled
    owner, power_w, rate = np.zeros(prbs, np.int64), np.zeros(prbs), np.zeros(cvs)
    objective, bound, outcome = kernel(
        needs_large(codes[method], prbs), codes[method], scaled.gain, scaled.weight, scaled.price, scaled.power,
        scaled.floor, scaled.cap, problem.mean_bps, owner, power_w, rate,
    )  # fmt: skip
    unit = problem.bandwidth_hz * _PER_NAT
    return RatAllocation(owner, power_w, rate * unit, objective * unit, bound * unit, statuses[outcome])


@cache
def _compiled() -> tuple[Any, Any, dict[str, int], tuple[RatStatus, ...]]:
    """The kernel with its codes, imported when it is first needed: numba takes its time."""
    from vefl_sim.optimize.rat.allocate import AllocationMethod, AllocationStatus, allocate, needs_large

    codes = {method: int(AllocationMethod[method.upper().replace("-", "_")]) for method in METHODS}
    return allocate, needs_large, codes, tuple(outcome.name.lower() for outcome in AllocationStatus)  # type: ignore[misc]
