"""The laws of an allocation of one slot, and the best of all allocations by brute force."""

from itertools import product

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.optimize.rat.large import powers
from vefl_sim.optimize.rat.problem import NOTHING, RatAllocation, RatProblem, new_allocation

STEP_W = 1e-322
"""Rounding of powers below 1e-308 W, which are multiples of 5e-324 W."""
LEAST = 1e-321
"""Rounding of an objective below 1e-308, the sum of a few such multiples."""


def counting(values: Floats) -> Floats:
    """Values so small that they count as none are 0."""
    return np.where(values > NOTHING, values, 0.0)


def floors(problem: RatProblem) -> Floats:
    """In nats."""
    return counting(problem.floor_bps / problem.nats_hz)


def rates(problem: RatProblem, allocation: RatAllocation) -> Floats:
    """In nats, as in the kernels."""
    return allocation.rate_bps / problem.nats_hz


def capacity(problem: RatProblem, allocation: RatAllocation) -> Floats:
    """What the powers carry, in nats."""
    prbs = np.arange(len(allocation.owner))
    snr = (allocation.power_w + STEP_W) * counting(problem.snr_per_watt)[allocation.owner, prbs]
    return np.bincount(allocation.owner, np.log1p(snr), len(problem.bits_left))


def worth(problem: RatProblem, allocation: RatAllocation) -> float:
    """Σ a·r."""
    return float(((problem.tradeoff + problem.slot_s * problem.bits_left) * allocation.rate_bps).sum())


def meets_floors(problem: RatProblem, allocation: RatAllocation) -> bool:
    return bool(np.all(rates(problem, allocation) >= floors(problem) * (1 - 1.001e-9)))


def rounding(problem: RatProblem, allocation: RatAllocation) -> float:
    """What rounding may change in Σ a·r − C·β·ΣP, of which one term can be far larger than the other."""
    watts = 1e-12 * allocation.power_w.sum() + len(allocation.owner) * STEP_W
    cost = problem.scaled.price * watts * (problem.nats_hz * problem.largest_weight)
    return float(1e-9 * worth(problem, allocation) + cost + LEAST)


def check(problem: RatProblem, allocation: RatAllocation, *, bounded: bool = True) -> None:
    """C7, C11, C12, rates within capacity and cap, a bound (if any) above the objective, and an honest status."""
    cvs, rate = len(problem.bits_left), rates(problem, allocation)
    assert np.all((allocation.owner >= 0) & (allocation.owner < cvs))
    assert np.all(allocation.power_w >= 0)
    spent_w = np.bincount(allocation.owner, allocation.power_w, cvs)
    assert np.all(spent_w <= problem.max_power_w * (1 + 1e-9) + STEP_W)
    assert np.all(rate >= 0)
    assert np.all(rate <= capacity(problem, allocation) * (1 + 1e-9))
    assert np.all(rate <= counting(problem.bits_left / problem.slot_s / problem.nats_hz) * (1 + 1e-9))
    assert np.isfinite(allocation.objective)
    if allocation.status in ("optimal", "gap"):
        assert meets_floors(problem, allocation)
        assert allocation.bound >= allocation.objective or not bounded
    elif allocation.status == "infeasible_floors":
        assert np.any(rate < floors(problem) * (1 - 1e-9))


def best_by_force(problem: RatProblem) -> float | None:
    """The largest objective of all owners that meet the floors, with the best powers; None if none does."""
    scaled, found = problem.scaled, []
    cvs, prbs = scaled.gain.shape
    allocation = new_allocation(cvs, prbs)
    for owner in product(range(cvs), repeat=prbs):
        allocation.owner[:] = owner
        objective = powers(scaled, allocation)
        if np.all(allocation.rate >= scaled.floor * (1 - 1e-9)):
            found.append(objective * (problem.nats_hz * problem.largest_weight))
    return max(found, default=None)
