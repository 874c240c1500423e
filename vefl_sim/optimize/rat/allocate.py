"""One slot, allocated by any of our methods: the kernel behind `rat.solve` and behind the MAC's bursts."""

from enum import IntEnum

import numpy as np

from vefl_sim.core.kernel import kernel
from vefl_sim.optimize.rat.assignment import assign
from vefl_sim.optimize.rat.exact import split, subset_values
from vefl_sim.optimize.rat.large import large, powers
from vefl_sim.optimize.rat.problem import EXACT_PRBS
from vefl_sim.optimize.rat.water import fill


class AllocationMethod(IntEnum):
    """How a slot is allocated."""

    AUTO = 0  # the exact one that fits, else LARGE
    EXACT = 1
    ASSIGNMENT = 2
    LARGE = 3
    EQUAL = 4
    MAX_SNR = 5
    PROPORTIONAL_FAIR = 6


def needs_large(method: AllocationMethod, prbs: int) -> bool | None:
    """The `many` of `allocate`: True, or None."""
    exact_will_do = method in (AllocationMethod.EXACT, AllocationMethod.ASSIGNMENT) or (
        method == AllocationMethod.AUTO and prbs <= EXACT_PRBS
    )
    return None if exact_will_do or method >= AllocationMethod.EQUAL else True


class AllocationStatus(IntEnum):
    """What can be said about an allocation."""

    OPTIMAL = 0
    GAP = 1
    INFEASIBLE_FLOORS = 2
    POLICY = 3


_SIZES = np.array([bin(subset).count("1") for subset in range(1 << EXACT_PRBS)])
_MET = 1e-9  # a floor missed by less than this share is met


@kernel
def allocate(many, method, gain, weight, price, power, floor, cap, mean, owner, watts, rate):
    """Fill `owner` (Z,), `watts` (Z,), `rate` (V,) in nats; return (objective, bound, outcome).

    `many` is None where LARGE cannot be needed: numba then leaves it out, which halves the time to compile.
    """
    cvs, prbs = gain.shape
    if method >= AllocationMethod.EQUAL:
        _deal(method, gain, power, cap, mean, owner, watts, rate)
        return (weight * rate).sum() - price * watts.sum(), np.nan, AllocationStatus.POLICY
    if cvs == 1:
        owner[:] = 0
    elif method == AllocationMethod.ASSIGNMENT or (
        method <= AllocationMethod.EXACT and cvs == prbs and floor.min() > 0
    ):
        _assignment(gain, weight, price, power, floor, cap, owner, watts)
    elif method == AllocationMethod.EXACT or (method == AllocationMethod.AUTO and prbs <= EXACT_PRBS):
        _exact(gain, weight, price, power, floor, cap, owner)
    elif many is not None:
        objective, bound, deficit = large(gain, weight, price, power, floor, cap, owner, watts, rate)
        missed = deficit > _MET * floor.sum()
        if missed:
            return (
                objective,
                np.nan,
                AllocationStatus.INFEASIBLE_FLOORS,
            )  # the bound speaks of those that meet the floors
        return objective, bound, AllocationStatus.GAP
    objective, deficit = powers(gain, weight, price, power, floor, cap, owner, watts, rate)
    if (
        deficit > _MET * floor.sum() and cvs == prbs > 1 and method <= AllocationMethod.EXACT
    ):  # better with nothing for somebody?
        if prbs <= EXACT_PRBS:
            _exact(gain, weight, price, power, floor, cap, owner)
            objective, deficit = powers(gain, weight, price, power, floor, cap, owner, watts, rate)
        elif many is not None:
            objective, _, deficit = large(gain, weight, price, power, floor, cap, owner, watts, rate)
            return objective, np.nan, AllocationStatus.INFEASIBLE_FLOORS
    if method == AllocationMethod.ASSIGNMENT and cvs > 1 and (cvs < prbs or floor.min() <= 0):
        return objective, np.nan, AllocationStatus.POLICY  # one pRB each is then a choice, not a consequence
    if deficit > _MET * floor.sum():
        return objective, np.nan, AllocationStatus.INFEASIBLE_FLOORS
    return objective, objective, AllocationStatus.OPTIMAL


@kernel
def _exact(gain, weight, price, power, floor, cap, owner):
    """The best split of all pRBs; everybody needs one to meet a floor, so that is tried first."""
    cvs, prbs = gain.shape
    value, share = np.empty((cvs, 1 << prbs)), np.empty(cvs, np.int64)
    penalty = _penalty(gain, weight, price, power, floor)
    for v in range(cvs):
        subset_values(gain[v], weight[v], price, power[v], floor[v], cap[v], penalty, value[v])
    sizes = _SIZES[: 1 << prbs]
    best = split(value, sizes, 1, share)
    if floor.min() <= 0 or best < -penalty * _MET * floor.sum():
        split(value, sizes, 0, share)
    for prb in range(prbs):
        for v in range(cvs):
            if share[v] >> prb & 1:
                owner[prb] = v


@kernel
def _assignment(gain, weight, price, power, floor, cap, owner, watts):
    """One pRB each; with more pRBs than CVs, stand-in rows of no value take the rest, which go to row 0."""
    cvs, prbs = gain.shape
    value, column = np.zeros((prbs, prbs)), np.empty(prbs, np.int64)
    penalty = _penalty(gain, weight, price, power, floor)
    for v in range(cvs):
        for prb in range(prbs):
            r, spent = fill(gain[v], np.array([prb]), weight[v], price, power[v], floor[v], cap[v], watts)
            value[v, prb] = weight[v] * r - price * spent - penalty * max(0.0, floor[v] - r)
    assign(value, column)
    owner[:] = 0
    for v in range(cvs):
        owner[column[v]] = v


@kernel
def _penalty(gain, weight, price, power, floor):
    """Worth of a missed nat: far more than anything that can be gained or spent, so that floors come first.

    Measured by the smallest floor, so that this one counts, too, as far as double precision carries.
    """
    stake = price * power.sum()
    for v in range(len(weight)):
        stake += gain.shape[1] * weight[v] * np.log1p(gain[v].max() * power[v])
    smallest = np.inf
    for v in range(len(floor)):
        if floor[v] > 0:
            smallest = min(smallest, floor[v])
    return max(stake, 1e-300) * min(1e4 / smallest, 1e11 / max(floor.sum(), 1e-300))


@kernel
def _deal(method, gain, power, cap, mean, owner, watts, rate):
    """The policies people compare with: who owns a pRB, then each CV's power equally over its own."""
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
