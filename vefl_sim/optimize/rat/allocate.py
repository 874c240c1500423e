"""Allocate one slot with any of our methods: the kernels that `rat.solve` and the MAC's bursts call.

`allocate` chooses owners and powers. `allocate_fixed` is for given powers (`radio.power = "open-loop"`): a CV that uses
n pRBs sends with min(p, P_max/n) on each, so only the sets of pRBs are chosen. An owner may leave pRBs of its set
unused, where one more costs more energy than it is worth.
"""

from enum import IntEnum

import numpy as np

from vefl_sim.core.kernel import dot, largest, least, total
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.exact import SUBSET_SIZES, assign, prune, split, subset_values
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


@kernel
def allocate(with_large, method, problem, allocation):
    """Fill the arrays of an `Allocation`; returns a `Solution`.

    `with_large` is None where LARGE cannot be needed: numba then compiles without it, in half the time.
    """
    cvs, prbs = problem.gain.shape
    if method >= AllocationMethod.EQUAL:
        _policy_owners(method, problem, allocation.owner)
        return Solution(_send(problem, problem.power, allocation), np.nan, AllocationStatus.POLICY)
    one_each = method == AllocationMethod.ASSIGNMENT or (
        method <= AllocationMethod.EXACT and cvs == prbs and least(problem.floor) > 0
    )
    if cvs == 1:
        allocation.owner[:] = 0
    elif one_each:
        _assignment(problem, None, allocation.owner)
    elif method == AllocationMethod.EXACT or (method == AllocationMethod.AUTO and prbs <= EXACT_PRBS):
        if not prune(problem, allocation.owner):
            best_sets(
                problem, None, not one_each, allocation.owner
            )  # not True: Numba compiles each constant separately
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
            best_sets(problem, None, not missed, allocation.owner)
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
def best_sets(problem, prb_watts, may_be_feasible, owner):
    """The best split of all pRBs among those that meet all floors; if there is none, the one with the least deficit.

    First only sets that meet the floor of their CV count. A CV with a floor needs a pRB, so if all have one, splits
    with at least one pRB each suffice. With given powers, `prb_watts` of each row, a CV uses the best part of its set.
    """
    cvs, prbs = problem.gain.shape
    size = 1 << prbs
    value, deficit, own = np.empty((cvs, size)), np.empty((cvs, size)), np.empty((cvs, size))
    used, share = np.empty((cvs, size if prb_watts is not None else 0), np.int64), np.empty(cvs, np.int64)
    for v in range(cvs):
        if prb_watts is None:
            subset_values(problem.gain[v], demand_of(problem, v), value[v], deficit[v])
        else:
            _set_values(problem, v, prb_watts[v], value[v], deficit[v])
    best, fewest = -np.inf, 1 if least(problem.floor) > 0 else 0
    if may_be_feasible:
        for v in range(cvs):
            for subset in range(size):
                met = deficit[v, subset] <= MET * problem.floor[v]
                own[v, subset] = value[v, subset] if met else -np.inf
            if prb_watts is not None:
                _use_parts(own[v], used[v])
        best = split(own, SUBSET_SIZES[:size], fewest, share)
    if best == -np.inf:
        per_nat = _penalty(problem)
        for v in range(cvs):
            for subset in range(size):
                own[v, subset] = value[v, subset] - per_nat * deficit[v, subset]
            if prb_watts is not None:
                _use_parts(own[v], used[v])
        split(own, SUBSET_SIZES[:size], 0 * fewest, share)  # not 0: Numba compiles each constant separately
    for v in range(cvs):
        mine = share[v] if prb_watts is None else used[v, share[v]]
        for prb in range(prbs):
            if mine >> prb & 1:
                owner[prb] = v


@kernel
def _assignment(problem, prb_watts, owner):
    """One pRB each, so that all floors are met or, if that is impossible, the total deficit is least.

    If there are more pRBs than CVs, dummy rows of value 0 take the rest, which then go to row 0. `prb_watts`: given
    powers. Returns whether all floors are met.
    """
    cvs, prbs = problem.gain.shape
    value, deficit, column = np.zeros((prbs, prbs)), np.zeros((prbs, prbs)), np.empty(prbs, np.int64)
    for v in range(cvs):
        cv = demand_of(problem, v)
        for prb in range(prbs):
            if prb_watts is None:
                rate, spent = on_one(problem.gain[v, prb], cv)
            else:
                spent = min(prb_watts[v], cv.power)
                rate = min(np.log1p(spent * problem.gain[v, prb]), cv.cap)
            value[v, prb] = cv.weight * rate - cv.price * spent
            deficit[v, prb] = max(0.0, cv.floor - rate)
    forbidden = -3 * _most_at_stake(problem)  # one such pair outweighs all that the other CVs can gain
    feasible = value.copy()
    for v in range(cvs):
        for prb in range(prbs):
            if deficit[v, prb] > MET * problem.floor[v]:
                feasible[v, prb] = forbidden
    met = assign(feasible, column) > 0.5 * forbidden
    if not met:
        per_nat = _penalty(problem)
        for v in range(prbs):
            for prb in range(prbs):
                value[v, prb] -= per_nat * deficit[v, prb]
        assign(value, column)
    owner[:] = 0
    for v in range(cvs):
        owner[column[v]] = v
    return met


@kernel
def _most_at_stake(problem):
    """More than any allocation can gain or spend."""
    stake = problem.price * total(problem.power) + 1e-300
    for v in range(len(problem.weight)):
        most = np.log1p(largest(problem.gain[v]) * problem.power[v])
        stake += problem.gain.shape[1] * problem.weight[v] * most
    return stake


@kernel
def _penalty(problem):
    """Penalty per missed nat where floors must be missed: far more than can be gained or spent, so deficits come first.

    It is scaled by the smallest floor, so that missing that one counts, too, as far as double precision allows.
    """
    smallest = np.inf
    for floor in problem.floor:
        if floor > 0:
            smallest = min(smallest, floor)
    return _most_at_stake(problem) * min(1e4 / smallest, 1e11 / max(total(problem.floor), 1e-300))


@kernel
def _policy_owners(method, problem, owner):
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


@kernel
def allocate_fixed(method, problem, prb_watts, order, allocation):
    """Fill the arrays of an `Allocation`; returns a `Solution`. The power of row v on a pRB is prb_watts[order[v]].

    Up to EXACT_PRBS pRBs AUTO and EXACT find the best sets; with more, AUTO is a policy without a bound.
    """
    cvs, prbs = problem.gain.shape
    owner, watts = allocation.owner, np.empty(cvs)
    owner[:] = -1
    for v in range(cvs):
        watts[v] = prb_watts[order[v]]
    if method >= AllocationMethod.EQUAL:
        _policy_owners(method, problem, owner)
    elif prbs > EXACT_PRBS:
        _greedy(problem, watts, owner)
    elif not (cvs == prbs and least(problem.floor) > 0 and _assignment(problem, watts, owner)):
        owner[:] = -1
        best_sets(problem, watts, True, owner)
    objective = _send(problem, watts, allocation)
    if method >= AllocationMethod.EQUAL or prbs > EXACT_PRBS:
        return Solution(objective, np.nan, AllocationStatus.POLICY)
    if misses_a_floor(problem, allocation):
        return Solution(objective, np.nan, AllocationStatus.INFEASIBLE_FLOORS)
    return Solution(objective, objective, AllocationStatus.OPTIMAL)


@kernel
def _send(problem, prb_watts, allocation):
    """Fill powers and rates of the owners, each with min(prb_watts, P_max/n) on its n pRBs; returns the objective."""
    cvs, prbs = problem.gain.shape
    owner, watts, rate, owned = allocation.owner, allocation.watts, allocation.rate, np.zeros(cvs)
    for prb in range(prbs):
        if owner[prb] >= 0:
            owned[owner[prb]] += 1
    rate[:] = 0.0
    for prb in range(prbs):
        v = owner[prb]
        watts[prb] = 0.0
        if v >= 0:
            watts[prb] = min(prb_watts[v], problem.power[v] / owned[v])
            rate[v] += np.log1p(watts[prb] * problem.gain[v, prb])
    for v in range(cvs):
        rate[v] = min(rate[v], problem.cap[v])
    return dot(problem.weight, rate) - problem.price * total(watts)


@kernel
def _set_values(problem, v, watts, value, deficit):
    """value[S] = a·r − λ·ΣP of CV v on the set S, and by how much it misses its floor."""
    prbs = problem.gain.shape[1]
    rates = np.empty((prbs + 1, prbs))  # by the number of pRBs, on which the power depends
    for number in range(1, prbs + 1):
        power = min(watts, problem.power[v] / number)
        for prb in range(prbs):
            rates[number, prb] = np.log1p(power * problem.gain[v, prb])
    for subset in range(len(value)):
        number, rate = SUBSET_SIZES[subset], 0.0
        power = min(watts, problem.power[v] / max(1, number))
        for prb in range(prbs):
            if subset >> prb & 1:
                rate += rates[number, prb]
        rate = min(rate, problem.cap[v])
        value[subset] = problem.weight[v] * rate - problem.price * (number * power)
        deficit[subset] = max(0.0, problem.floor[v] - rate)


@kernel
def _use_parts(own, used):
    """Let own[S] be that of the best part of S, which is written to used[S]; larger sets come after their parts."""
    for subset in range(len(own)):
        used[subset] = subset
        rest = subset
        while rest:
            part = subset ^ (rest & -rest)
            if own[part] > own[subset]:
                own[subset], used[subset] = own[part], used[part]
            rest &= rest - 1


@kernel
def _greedy(problem, prb_watts, owner):
    """For many pRBs: CVs below their floors take one pRB each in turn; then each pRB goes where it is worth most.

    A CV stops taking pRBs where one more would not raise its rate, so that a floor out of reach does not use up all.
    """
    cvs, prbs = problem.gain.shape
    rate, taking = np.zeros(cvs), True
    while taking:
        taking = False
        for v in range(cvs):
            best = -1  # the free pRB with the largest gain
            for prb in range(prbs if rate[v] < problem.floor[v] else 0):
                if owner[prb] < 0 and (best < 0 or problem.gain[v, prb] > problem.gain[v, best]):
                    best = prb
            more = _rate_with(problem, v, prb_watts[v], owner, best)
            if best >= 0 and more > rate[v]:
                owner[best], rate[v], taking = v, more, True
    for prb in range(prbs):
        if owner[prb] >= 0:
            continue
        best, worth = -1, 0.0
        for v in range(cvs):
            gained = min(_rate_with(problem, v, prb_watts[v], owner, prb), problem.cap[v]) - rate[v]
            value = problem.weight[v] * gained - problem.price * prb_watts[v]
            if value > worth:
                best, worth = v, value
        owner[prb] = best
        if best >= 0:
            rate[best] = min(_rate_with(problem, best, prb_watts[best], owner, -1), problem.cap[best])


@kernel
def _rate_with(problem, v, watts, owner, another):
    """Rate of CV v on the pRBs that it owns, and on `another` one if that is not −1."""
    number = 1 if another >= 0 else 0
    for prb in range(len(owner)):
        if owner[prb] == v:
            number += 1
    power, rate = min(watts, problem.power[v] / max(1, number)), 0.0
    for prb in range(len(owner)):
        if owner[prb] == v or prb == another:
            rate += np.log1p(power * problem.gain[v, prb])
    return rate
