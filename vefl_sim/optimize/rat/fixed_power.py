"""Allocate the pRBs of one slot where the transmit power of a CV on a pRB is given (`radio.power = "open-loop"`).

A CV that uses n pRBs sends with min(p, P_max/n) on each, so only the sets of pRBs are chosen. An owner may leave pRBs
of its set unused, where one more costs more energy than it is worth.
"""

import numpy as np

from vefl_sim.core.kernel import dot, least, total
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.allocate import (
    SUBSET_SIZES,
    AllocationStatus,
    misses_a_floor,
    most_at_stake,
    penalty,
    policy_owners,
)
from vefl_sim.optimize.rat.assignment import assign
from vefl_sim.optimize.rat.exact import split
from vefl_sim.optimize.rat.methods import AllocationMethod
from vefl_sim.optimize.rat.problem import EXACT_PRBS, MET, Solution


@kernel
def allocate_fixed(method, problem, prb_watts, order, allocation):
    """Fill the arrays of an `Allocation`; returns a `Solution`. The power of row v on a pRB is prb_watts[order[v]].

    Up to EXACT_PRBS pRBs AUTO and EXACT find the best sets; with more, AUTO is a policy without a bound.
    """
    prbs = problem.gain.shape[1]
    if method >= AllocationMethod.EQUAL:
        policy_owners(method, problem, allocation.owner)
    elif prbs <= EXACT_PRBS:
        if not _one_each(problem, prb_watts, order, allocation.owner):
            _best_sets(problem, prb_watts, order, allocation.owner)
    else:
        _greedy(problem, prb_watts, order, allocation.owner)
    _send(problem, prb_watts, order, allocation)
    objective = dot(problem.weight, allocation.rate) - problem.price * total(allocation.watts)
    if method >= AllocationMethod.EQUAL or prbs > EXACT_PRBS:
        return Solution(objective, np.nan, AllocationStatus.POLICY)
    if misses_a_floor(problem, allocation):
        return Solution(objective, np.nan, AllocationStatus.INFEASIBLE_FLOORS)
    return Solution(objective, objective, AllocationStatus.OPTIMAL)


@kernel
def _send(problem, prb_watts, order, allocation):
    """Powers and rates of the owners."""
    cvs, prbs = problem.gain.shape
    owned = np.zeros(cvs)
    for prb in range(prbs):
        if allocation.owner[prb] >= 0:
            owned[allocation.owner[prb]] += 1
    allocation.rate[:] = 0.0
    for prb in range(prbs):
        v = allocation.owner[prb]
        allocation.watts[prb] = 0.0
        if v >= 0:
            allocation.watts[prb] = min(prb_watts[order[v]], problem.power[v] / owned[v])
            allocation.rate[v] += np.log1p(allocation.watts[prb] * problem.gain[v, prb])
    for v in range(cvs):
        allocation.rate[v] = min(allocation.rate[v], problem.cap[v])


@kernel
def _one_each(problem, prb_watts, order, owner):
    """The best assignment where floors force one pRB each; False if they do not, or cannot all be met."""
    cvs, prbs = problem.gain.shape
    if cvs < prbs or least(problem.floor) <= 0:
        return False
    value, column = np.empty((cvs, prbs)), np.empty(cvs, np.int64)
    forbidden = -3 * most_at_stake(problem)  # one such pair outweighs all that the other CVs can gain
    for v in range(cvs):
        power = min(prb_watts[order[v]], problem.power[v])
        for prb in range(prbs):
            rate = min(np.log1p(power * problem.gain[v, prb]), problem.cap[v])
            met = problem.floor[v] - rate <= MET * problem.floor[v]
            value[v, prb] = problem.weight[v] * rate - problem.price * power if met else forbidden
    if assign(value, column) <= 0.5 * forbidden:
        return False
    for v in range(cvs):
        owner[column[v]] = v
    return True


@kernel
def _best_sets(problem, prb_watts, order, owner):
    """The best sets that meet all floors; if there are none, those with the least total deficit."""
    cvs, prbs = problem.gain.shape
    size = 1 << prbs
    value, deficit, own = np.empty((cvs, size)), np.empty((cvs, size)), np.empty((cvs, size))
    used, share = np.empty((cvs, size), np.int64), np.zeros(cvs, np.int64)
    for v in range(cvs):
        _set_values(problem, v, prb_watts[order[v]], value[v], deficit[v])
        for subset in range(size):
            met = deficit[v, subset] <= MET * problem.floor[v]
            own[v, subset] = value[v, subset] if met else -np.inf
        _use_parts(own[v], used[v])
    fewest = 1 if least(problem.floor) > 0 else 0
    if _split(own, fewest, share) == -np.inf:
        per_nat = penalty(problem)
        for v in range(cvs):
            for subset in range(size):
                own[v, subset] = value[v, subset] - per_nat * deficit[v, subset]
            _use_parts(own[v], used[v])
        _split(own, 0 * fewest, share)  # not 0: Numba compiles each constant separately
    for prb in range(prbs):
        owner[prb] = -1
        for v in range(cvs):
            if used[v, share[v]] >> prb & 1:
                owner[prb] = v


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
def _split(own, fewest, share):
    """The best split of all pRBs, also for a single CV; returns its value."""
    cvs, size = own.shape
    if cvs > 1:
        return split(own, SUBSET_SIZES[:size], fewest, share)
    share[0] = size - 1
    return own[0, size - 1]


@kernel
def _greedy(problem, prb_watts, order, owner):
    """For many pRBs: CVs below their floors take one pRB each in turn; then each pRB goes where it is worth most.

    A CV stops taking pRBs where one more would not raise its rate, so that a floor out of reach does not use up all.
    """
    cvs, prbs = problem.gain.shape
    owner[:] = -1
    rate, taking = np.zeros(cvs), True
    while taking:
        taking = False
        for v in range(cvs):
            best = _best_free(problem, v, owner) if rate[v] < problem.floor[v] else -1
            if best < 0:
                continue
            more = _rate_with(problem, v, prb_watts[order[v]], owner, best)
            if more > rate[v]:
                owner[best], rate[v], taking = v, more, True
    for prb in range(prbs):
        if owner[prb] >= 0:
            continue
        best, worth = -1, 0.0
        for v in range(cvs):
            gained = min(_rate_with(problem, v, prb_watts[order[v]], owner, prb), problem.cap[v]) - rate[v]
            value = problem.weight[v] * gained - problem.price * prb_watts[order[v]]
            if value > worth:
                best, worth = v, value
        owner[prb] = best
        if best >= 0:
            rate[best] = min(_rate_with(problem, best, prb_watts[order[best]], owner, -1), problem.cap[best])


@kernel
def _best_free(problem, v, owner):
    """The pRB without an owner on which CV v has the largest gain; −1 if all have one."""
    best = -1
    for prb in range(len(owner)):
        if owner[prb] < 0 and (best < 0 or problem.gain[v, prb] > problem.gain[v, best]):
            best = prb
    return best


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
