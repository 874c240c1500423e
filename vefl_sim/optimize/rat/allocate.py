"""Allocate one slot with any of our methods: the kernel that `rat.solve` and the MAC's bursts call."""

from enum import IntEnum

import numpy as np

from vefl_sim.core.kernel import kernel
from vefl_sim.optimize.rat.assignment import assign
from vefl_sim.optimize.rat.exact import split, subset_values
from vefl_sim.optimize.rat.large import large, powers
from vefl_sim.optimize.rat.problem import EXACT_PRBS
from vefl_sim.optimize.rat.water import water_fill


class AllocationMethod(IntEnum):
    """Codes of the allocation methods (`rat.method`)."""

    AUTO = 0  # an exact method where one applies, else LARGE
    EXACT = 1
    ASSIGNMENT = 2
    LARGE = 3
    EQUAL = 4
    MAX_SNR = 5
    PROPORTIONAL_FAIR = 6


def needs_large(method: AllocationMethod, prbs: int) -> bool | None:
    """The argument `with_large` of `allocate`: True if the method may need LARGE, else None."""
    exact_suffices = method in (AllocationMethod.EXACT, AllocationMethod.ASSIGNMENT) or (
        method == AllocationMethod.AUTO and prbs <= EXACT_PRBS
    )
    return None if exact_suffices or method >= AllocationMethod.EQUAL else True


class AllocationStatus(IntEnum):
    """What is proved about an allocation."""

    OPTIMAL = 0
    GAP = 1
    INFEASIBLE_FLOORS = 2
    POLICY = 3


_SIZES = np.array([bin(subset).count("1") for subset in range(1 << EXACT_PRBS)])  # pRBs in each subset
_FLOOR_TOLERANCE = 1e-9  # share of all floors: a smaller deficit counts as met


@kernel
def allocate(with_large, method, gain, weight, price, power, floor, cap, mean, owner, watts, rate):
    """Fill `owner` (Z,), `watts` (Z,), `rate` (V,) in nats; return (objective, bound, status).

    `with_large` is None where LARGE cannot be needed: numba then compiles without it, in half the time.
    """
    cvs, prbs = gain.shape
    if method >= AllocationMethod.EQUAL:
        _apply_policy(method, gain, power, cap, mean, owner, watts, rate)
        return (weight * rate).sum() - price * watts.sum(), np.nan, AllocationStatus.POLICY
    if cvs == 1:
        owner[:] = 0
    elif method == AllocationMethod.ASSIGNMENT or (
        method <= AllocationMethod.EXACT and cvs == prbs and floor.min() > 0
    ):
        _assignment(gain, weight, price, power, floor, cap, owner, watts)
    elif method == AllocationMethod.EXACT or (method == AllocationMethod.AUTO and prbs <= EXACT_PRBS):
        _exact(gain, weight, price, power, floor, cap, owner)
    elif with_large is not None:
        objective, bound, deficit = large(gain, weight, price, power, floor, cap, owner, watts, rate)
        missed = deficit > _FLOOR_TOLERANCE * floor.sum()
        if missed:
            # The bound holds only for allocations that meet the floors.
            return objective, np.nan, AllocationStatus.INFEASIBLE_FLOORS
        return objective, bound, AllocationStatus.GAP
    objective, deficit = powers(gain, weight, price, power, floor, cap, owner, watts, rate)
    if deficit > _FLOOR_TOLERANCE * floor.sum() and cvs == prbs > 1 and method <= AllocationMethod.EXACT:
        # The deficit may be smaller if some CV gets no pRB at all.
        if prbs <= EXACT_PRBS:
            _exact(gain, weight, price, power, floor, cap, owner)
            objective, deficit = powers(gain, weight, price, power, floor, cap, owner, watts, rate)
        elif with_large is not None:
            objective, _, deficit = large(gain, weight, price, power, floor, cap, owner, watts, rate)
            return objective, np.nan, AllocationStatus.INFEASIBLE_FLOORS
    if method == AllocationMethod.ASSIGNMENT and cvs > 1 and (cvs < prbs or floor.min() <= 0):
        return objective, np.nan, AllocationStatus.POLICY  # here the floors do not force one pRB each
    if deficit > _FLOOR_TOLERANCE * floor.sum():
        return objective, np.nan, AllocationStatus.INFEASIBLE_FLOORS
    return objective, objective, AllocationStatus.OPTIMAL


@kernel
def _exact(gain, weight, price, power, floor, cap, owner):
    """The best split of all pRBs; a CV needs a pRB to meet its floor, so at least one pRB each is tried first."""
    cvs, prbs = gain.shape
    value, share = np.empty((cvs, 1 << prbs)), np.empty(cvs, np.int64)
    penalty = _penalty(gain, weight, price, power, floor)
    for v in range(cvs):
        subset_values(gain[v], weight[v], price, power[v], floor[v], cap[v], penalty, value[v])
    sizes = _SIZES[: 1 << prbs]
    best = split(value, sizes, 1, share)
    if floor.min() <= 0 or best < -penalty * _FLOOR_TOLERANCE * floor.sum():
        split(value, sizes, 0, share)
    for prb in range(prbs):
        for v in range(cvs):
            if share[v] >> prb & 1:
                owner[prb] = v


@kernel
def _assignment(gain, weight, price, power, floor, cap, owner, watts):
    """One pRB each; if there are more pRBs than CVs, dummy rows of value 0 take the rest, which then go to row 0."""
    cvs, prbs = gain.shape
    value, column = np.zeros((prbs, prbs)), np.empty(prbs, np.int64)
    penalty = _penalty(gain, weight, price, power, floor)
    for v in range(cvs):
        for prb in range(prbs):
            r, spent = water_fill(gain[v], np.array([prb]), weight[v], price, power[v], floor[v], cap[v], watts)
            value[v, prb] = weight[v] * r - price * spent - penalty * max(0.0, floor[v] - r)
    assign(value, column)
    owner[:] = 0
    for v in range(cvs):
        owner[column[v]] = v


@kernel
def _penalty(gain, weight, price, power, floor):
    """Penalty per missed nat: far more than anything that can be gained or spent, so that floors come first.

    It is scaled by the smallest floor, so that missing that one counts, too, as far as double precision allows.
    """
    most_at_stake = price * power.sum()
    for v in range(len(weight)):
        most_at_stake += gain.shape[1] * weight[v] * np.log1p(gain[v].max() * power[v])
    smallest = np.inf
    for v in range(len(floor)):
        if floor[v] > 0:
            smallest = min(smallest, floor[v])
    return max(most_at_stake, 1e-300) * min(1e4 / smallest, 1e11 / max(floor.sum(), 1e-300))


@kernel
def _apply_policy(method, gain, power, cap, mean, owner, watts, rate):
    """The policies for comparison: choose the owner of each pRB, then spread each CV's power equally over its pRBs."""
    cvs, prbs = gain.shape
    owned = np.zeros(cvs)
    for prb in range(prbs):
        if method == AllocationMethod.EQUAL:
            owner[prb] = prb % cvs
        elif method == AllocationMethod.MAX_SNR:
            owner[prb] = np.argmax(gain[:, prb])
        else:
            score = np.log1p(power / prbs * gain[:, prb]) / np.maximum(mean, 1e-12)
            owner[prb] = np.argmax(score)
        owned[owner[prb]] += 1
    rate[:] = 0.0
    for prb in range(prbs):
        v = owner[prb]
        watts[prb] = power[v] / owned[v]
        rate[v] += np.log1p(watts[prb] * gain[v, prb])
    rate[:] = np.minimum(rate, cap)
