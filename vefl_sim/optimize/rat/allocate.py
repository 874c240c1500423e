"""Allocate one slot with any of our methods: the kernel that `rat.solve` and the MAC's bursts call."""

from enum import IntEnum

import numpy as np

from vefl_sim.core.kernel import dot, largest, least, total
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.assignment import assign
from vefl_sim.optimize.rat.exact import prune, split, subset_values
from vefl_sim.optimize.rat.large import large, powers
from vefl_sim.optimize.rat.methods import AllocationMethod
from vefl_sim.optimize.rat.problem import EXACT_PRBS, MET, Solution
from vefl_sim.optimize.rat.water import demand_of, on_one


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


SUBSET_SIZES = np.array([bin(subset).count("1") for subset in range(1 << EXACT_PRBS)])  # pRBs in each subset


@kernel
def allocate(with_large, method, problem, allocation):
    """Fill the arrays of an `Allocation`; returns a `Solution`.

    `with_large` is None where LARGE cannot be needed: numba then compiles without it, in half the time.
    """
    cvs, prbs = problem.gain.shape
    if method >= AllocationMethod.EQUAL:
        _apply_policy(method, problem, allocation)
        objective = dot(problem.weight, allocation.rate) - problem.price * total(allocation.watts)
        return Solution(objective, np.nan, AllocationStatus.POLICY)
    one_each = method == AllocationMethod.ASSIGNMENT or (
        method <= AllocationMethod.EXACT and cvs == prbs and least(problem.floor) > 0
    )
    if cvs == 1:
        allocation.owner[:] = 0
    elif one_each:
        _assignment(problem, allocation.owner)
    elif method == AllocationMethod.EXACT or (method == AllocationMethod.AUTO and prbs <= EXACT_PRBS):
        if not prune(problem, allocation.owner):
            _exact(problem, not one_each, allocation.owner)  # not True: Numba compiles each constant separately
    elif with_large is not None:
        objective, bound = large(problem, allocation)
        if misses_a_floor(problem, allocation):
            return Solution(objective, np.nan, AllocationStatus.INFEASIBLE_FLOORS)  # the bound holds if floors are met
        return Solution(objective, bound, AllocationStatus.GAP)
    objective = powers(problem, allocation)
    missed = misses_a_floor(problem, allocation)
    if missed and one_each and method != AllocationMethod.ASSIGNMENT and cvs > 1:
        # The deficit may be smaller if some CV gets no pRB at all.
        if prbs <= EXACT_PRBS:
            _exact(problem, not missed, allocation.owner)
            objective = powers(problem, allocation)
        elif with_large is not None:
            objective, _ = large(problem, allocation)
    if method == AllocationMethod.ASSIGNMENT and cvs > 1 and (cvs < prbs or least(problem.floor) <= 0):
        return Solution(objective, np.nan, AllocationStatus.POLICY)  # here the floors do not force one pRB each
    if missed:
        return Solution(objective, np.nan, AllocationStatus.INFEASIBLE_FLOORS)
    return Solution(objective, objective, AllocationStatus.OPTIMAL)


@kernel
def misses_a_floor(problem, allocation):
    """Whether a CV has less than its own floor: a small floor counts as much as a large one."""
    missed = False
    for v in range(len(problem.floor)):
        missed |= allocation.rate[v] < problem.floor[v] * (1 - MET)
    return missed


@kernel
def _exact(problem, may_be_feasible, owner):
    """The best split of all pRBs among those that meet all floors; if there is none, the one with the least deficit.

    First only sets that meet the floor of their CV count. A CV with a floor needs a pRB, so if all have one, splits
    with at least one pRB each suffice.
    """
    cvs, prbs = problem.gain.shape
    value, deficit, own = np.empty((cvs, 1 << prbs)), np.empty((cvs, 1 << prbs)), np.empty((cvs, 1 << prbs))
    share, sizes = np.empty(cvs, np.int64), SUBSET_SIZES[: 1 << prbs]
    for v in range(cvs):
        subset_values(problem.gain[v], demand_of(problem, v), value[v], deficit[v])
    best, fewest = -np.inf, 1 if least(problem.floor) > 0 else 0
    if may_be_feasible:
        for v in range(cvs):
            for subset in range(1 << prbs):
                met = deficit[v, subset] <= MET * problem.floor[v]
                own[v, subset] = value[v, subset] if met else -np.inf
        best = split(own, sizes, fewest, share)
    if best == -np.inf:
        per_nat = penalty(problem)
        for v in range(cvs):
            for subset in range(1 << prbs):
                own[v, subset] = value[v, subset] - per_nat * deficit[v, subset]
        split(own, sizes, 0 * fewest, share)  # not 0: Numba compiles each constant separately
    for prb in range(prbs):
        for v in range(cvs):
            if share[v] >> prb & 1:
                owner[prb] = v


@kernel
def _assignment(problem, owner):
    """One pRB each, so that all floors are met or, if that is impossible, the total deficit is least.

    If there are more pRBs than CVs, dummy rows of value 0 take the rest, which then go to row 0.
    """
    cvs, prbs = problem.gain.shape
    value, deficit, column = np.zeros((prbs, prbs)), np.zeros((prbs, prbs)), np.empty(prbs, np.int64)
    for v in range(cvs):
        cv = demand_of(problem, v)
        for prb in range(prbs):
            rate, spent = on_one(problem.gain[v, prb], cv)
            value[v, prb] = cv.weight * rate - cv.price * spent
            deficit[v, prb] = max(0.0, cv.floor - rate)
    forbidden = -3 * most_at_stake(problem)  # one such pair outweighs all that the other CVs can gain
    feasible = value.copy()
    for v in range(cvs):
        for prb in range(prbs):
            if deficit[v, prb] > MET * problem.floor[v]:
                feasible[v, prb] = forbidden
    if assign(feasible, column) <= 0.5 * forbidden:
        per_nat = penalty(problem)
        for v in range(prbs):
            for prb in range(prbs):
                value[v, prb] -= per_nat * deficit[v, prb]
        assign(value, column)
    owner[:] = 0
    for v in range(cvs):
        owner[column[v]] = v


@kernel
def most_at_stake(problem):
    """More than any allocation can gain or spend."""
    stake = problem.price * total(problem.power) + 1e-300
    for v in range(len(problem.weight)):
        most = np.log1p(largest(problem.gain[v]) * problem.power[v])
        stake += problem.gain.shape[1] * problem.weight[v] * most
    return stake


@kernel
def penalty(problem):
    """Penalty per missed nat where floors must be missed: far more than can be gained or spent, so deficits come first.

    It is scaled by the smallest floor, so that missing that one counts, too, as far as double precision allows.
    """
    smallest = np.inf
    for floor in problem.floor:
        if floor > 0:
            smallest = min(smallest, floor)
    return most_at_stake(problem) * min(1e4 / smallest, 1e11 / max(total(problem.floor), 1e-300))


@kernel
def _apply_policy(method, problem, allocation):
    """The policies for comparison: choose the owner of each pRB, then spread each CV's power equally over its pRBs."""
    cvs, prbs = problem.gain.shape
    gain, power, owner, watts, rate = problem.gain, problem.power, allocation.owner, allocation.watts, allocation.rate
    policy_owners(method, problem, owner)
    owned = np.zeros(cvs)
    for prb in range(prbs):
        owned[owner[prb]] += 1
    rate[:] = 0.0
    for prb in range(prbs):
        v = owner[prb]
        watts[prb] = power[v] / owned[v]
        rate[v] += np.log1p(watts[prb] * gain[v, prb])
    for v in range(cvs):
        rate[v] = min(rate[v], problem.cap[v])


@kernel
def policy_owners(method, problem, owner):
    """The owner of each pRB by one of the policies for comparison."""
    cvs, prbs = problem.gain.shape
    gain, power = problem.gain, problem.power
    for prb in range(prbs):
        if method == AllocationMethod.EQUAL:
            owner[prb] = prb % cvs
        else:
            best = -np.inf
            for v in range(cvs):
                score = gain[v, prb]
                if method == AllocationMethod.PROPORTIONAL_FAIR:
                    score = np.log1p(power[v] / prbs * score) / max(problem.mean[v], 1e-12)
                if score > best:
                    best, owner[prb] = score, v
