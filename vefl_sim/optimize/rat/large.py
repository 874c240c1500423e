"""The RAT sub-problem for any number of pRBs: owners from prices, improved by local search, with an upper bound."""

import numpy as np

from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.assignment import assign
from vefl_sim.optimize.rat.dual import Bids, bounded, fill_worths, least_bound, relative_gains
from vefl_sim.optimize.rat.local_search import Ground, better, demand_in, fill_lists, greedy, improve, new_holdings
from vefl_sim.optimize.rat.problem import NOTHING
from vefl_sim.optimize.rat.set_sizes import bound_by_sizes
from vefl_sim.optimize.rat.water import demand_of, on_one, water_fill

NEAR = (0.05, 0.2, 0.8, np.inf)  # of the mean worth of a pRB: largest loss of an exchange, stage by stage
SMALL_GAP = 1e-3  # of the bound: the search stops
LARGE_GAP = 0.05  # of the value: the greedy allocation is tried, too
EFFORT = 40  # evaluations per pRB that the local search may spend


@kernel
def powers(problem, allocation):
    """Fill watts (Z,) and rate (V,) for given owners, by water-filling for each CV; returns the objective."""
    objective, prbs = 0.0, np.empty(len(allocation.owner), np.int64)
    for v in range(len(problem.weight)):
        number = 0
        for prb in range(len(prbs)):
            if allocation.owner[prb] == v:
                prbs[number] = prb
                number += 1
        rate, spent = water_fill(problem.gain[v], prbs[:number], demand_of(problem, v), allocation.watts)
        allocation.rate[v] = rate
        objective += problem.weight[v] * rate - problem.price * spent
    return objective


@kernel
def large(problem, allocation):
    """Fill the arrays of an `Allocation`; returns (objective, bound).

    The local search starts from the owners that the prices favour. If a floor is unmet or the gap is large, it is
    repeated from the greedy allocation if that is better; if a floor is still unmet, from one pRB each. The bound holds
    for allocations that meet the floors.
    """
    ground, weight, bound = survey(problem)
    enough = bound - SMALL_GAP * abs(bound)
    cvs, prbs = problem.gain.shape
    holdings, other = new_holdings(cvs, prbs), new_holdings(cvs, prbs)
    owners_by_loss(ground, weight, holdings.owner)
    deficit, value = search_owners(ground, holdings, enough)
    if deficit > 0 or bound - value > LARGE_GAP * abs(value):
        other_deficit, other_value = greedy(ground, other)
        if better(ground.scale, other_deficit - deficit, other_value - value):
            deficit, value = search_owners(ground, other, enough)
            holdings.owner[:] = other.owner
    if deficit > 0:
        other.owner[:] = holdings.owner
        one_each(ground, other.owner)
        other_deficit, other_value = search_owners(ground, other, enough)
        if better(ground.scale, other_deficit - deficit, other_value - value):
            holdings.owner[:] = other.owner
    allocation.owner[:] = holdings.owner
    objective = powers(problem, allocation)
    return objective, max(bound, objective)  # they may be equal but for rounding


@kernel
def survey(problem):
    """(Ground, w, bound) at the prices of the least D; the loss of an owner is max_u h_uz − h_vz."""
    cvs, prbs = problem.gain.shape
    gains = relative_gains(problem.gain)
    bound, prices = least_bound(problem, gains)
    bids = Bids(np.empty((cvs, prbs)), np.empty(prbs), np.empty(cvs), np.empty(cvs))
    fill_worths(gains, prices, bids)
    loss, scale = bids.best - bids.worth, (problem.floor.sum() + 1e-300, abs(bound) + 1e-300)
    inverse, demand = 1 / np.maximum(problem.gain, NOTHING), np.empty((cvs, 6))
    for v in range(cvs):
        demand[v] = demand_of(problem, v)
    tighter = bound_by_sizes(bounded(problem), gains, prices, bids)
    return Ground(problem.gain, inverse, demand, loss, bound, scale), prices.weight, min(bound, tighter)


@kernel
def owners_by_loss(ground, weight, owner):
    """Give every pRB to the CV with loss 0, or to the largest w·g if it is worth 0 to all CVs at these prices."""
    for prb in range(len(owner)):
        owner[prb] = np.argmin(ground.loss[:, prb])
        if ground.loss[:, prb].max() == 0:
            owner[prb] = np.argmax(weight * ground.gain[:, prb])


@kernel
def search_owners(ground, holdings, enough):
    """Improve the owners by local search, exchanges with small losses first, until the value is enough.

    Returns (deficit, value).
    """
    prbs = len(holdings.owner)
    fill_lists(ground, holdings)
    deficit, value, effort = 0.0, 0.0, EFFORT * prbs
    for near in NEAR:
        deficit, value, effort = improve(ground, holdings, near * abs(ground.bound) / prbs, effort, enough)
    return deficit, value


@kernel
def one_each(ground, owner):
    """Give every CV one pRB so that the total deficit is least (then the value largest); the rest keep their owner.

    Moving one or two pRBs at a time can miss this where almost every CV has just one.
    """
    cvs, prbs = ground.loss.shape
    value, column = np.zeros((prbs, prbs)), np.empty(prbs, np.int64)
    for v in range(cvs):
        cv = demand_in(ground.demand, v)
        for prb in range(prbs):
            rate, spent = on_one(ground.gain[v, prb], cv)
            worth, deficit = cv.weight * rate - cv.price * spent, max(0.0, cv.floor - rate)
            value[v, prb] = 1e-6 * worth / ground.scale[1] - deficit / ground.scale[0]
    assign(value, column)
    for v in range(cvs):
        owner[column[v]] = v
