"""The RAT sub-problem of one slot: who gets which pRB, and at what power."""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Status = Literal["optimal", "gap", "infeasible_floors", "policy"]


@dataclass(frozen=True)
class RatProblem:
    """One slot: V scheduled CVs in scheduling order, Z pRBs."""

    snr_per_watt: Floats  # ‖h‖²/(ως²), shape (V, Z)
    max_power_w: Floats  # P_max, shape (V,)
    bits_left: Floats  # Q, shape (V,)
    slot_s: float  # κ
    bandwidth_hz: float  # ω(1−υ)


@dataclass(frozen=True)
class RatAllocation:
    """The answer. A pRB has one owner (C7), so its power needs no second index."""

    owner: NDArray[np.int64]  # row of the CV that owns the pRB, −1 for nobody; shape (Z,)
    power_w: Floats  # on each pRB, shape (Z,)
    rate_bps: Floats  # of each CV, at most Q/κ; shape (V,)
    objective: float  # nan for policies that optimize nothing
    bound: float
    status: Status


class RatPolicy(Protocol):
    """Anything that allocates a slot."""

    def __call__(self, problem: RatProblem) -> RatAllocation:
        """Allocate the pRBs of one slot."""
        ...


def equal(problem: RatProblem) -> RatAllocation:
    """PRBs dealt in turn in scheduling order; each CV spreads P_max equally over its own."""
    cvs, prbs = problem.snr_per_watt.shape
    owner = np.arange(prbs) % cvs
    owned = np.bincount(owner, minlength=cvs)
    power_w = (problem.max_power_w / owned)[owner]
    rate_bps = achieved_rate_bps(problem, owner, power_w)
    return RatAllocation(owner, power_w, rate_bps, np.nan, np.nan, "policy")


def achieved_rate_bps(problem: RatProblem, owner: NDArray[np.int64], power_w: Floats) -> Floats:
    """Shannon rate of each CV over the pRBs it owns, capped at the bits it has left."""
    used = np.flatnonzero(owner >= 0)
    snr = power_w[used] * problem.snr_per_watt[owner[used], used]
    rate = np.bincount(owner[used], weights=problem.bandwidth_hz * np.log2(1 + snr), minlength=len(problem.bits_left))
    return np.minimum(rate, problem.bits_left / problem.slot_s)


METHODS: dict[str, RatPolicy] = {"auto": equal, "equal": equal}


def solve(problem: RatProblem, method: str = "auto") -> RatAllocation:
    """Allocate one slot by a method of our own."""
    return METHODS[method](problem)
