"""The RAT sub-problem for any number of pRBs: owners from prices, improved by local search, with an upper bound."""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.assignment import assign
from vefl_sim.optimize.rat.dual import Bids, Gains, Prices, bounded, fill_worths, least_bound, relative_gains
from vefl_sim.optimize.rat.local_search import (
    EPS,
    Ground,
    better,
    demand_in,
    fill_lists,
    move_one,
    new_holdings,
    new_market,
    offer,
    outcome,
    swap_one,
)
from vefl_sim.optimize.rat.problem import NOTHING
from vefl_sim.optimize.rat.set_sizes import bound_by_sizes
from vefl_sim.optimize.rat.water import demand_of, on_one, water_fill

SMALL_GAP = 1e-3  # of the bound: the search stops
EFFORT = 40  # evaluations per pRB that the local search may spend


class Survey(NamedTuple):
    """What prices tell of a slot: worths at the prices of the least D, and the bounds that follow."""

    ground: Ground
    gains: Gains
    prices: Prices
    bids: Bids
    prices_bound: float  # D
    bound: float  # the smaller one of D and the bound by sizes of sets


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

    The local search starts from the owners that the prices favour. If a floor is unmet, it is repeated from one pRB
    each. The bound holds for allocations that meet the floors.
    """
    found = survey(problem)
    ground, market = found.ground, new_market(found.gains)
    enough = found.bound - SMALL_GAP * abs(found.bound)
    cvs, prbs = problem.gain.shape
    holdings = new_holdings(cvs, prbs)
    owners_by_worth(problem, found, holdings.owner)
    deficit, value = search_owners(ground, holdings, market, enough)
    allocation.owner[:] = holdings.owner
    if deficit > 0:
        one_each(ground, holdings.owner)
        other_deficit, other_value = search_owners(ground, holdings, market, enough)
        if better(ground.scale, other_deficit - deficit, other_value - value):
            allocation.owner[:] = holdings.owner
    objective = powers(problem, allocation)
    return objective, max(found.bound, objective)  # they may be equal but for rounding


@kernel
def survey(problem):
    """Find the prices of the least bound, and what they tell of the slot."""
    cvs, prbs = problem.gain.shape
    gains = relative_gains(problem.gain)
    looser = bounded(problem, gains)
    prices_bound, prices = least_bound(looser, gains)
    bids = Bids(np.empty((cvs, prbs)), np.empty(prbs), np.empty(cvs), np.empty(cvs))
    fill_worths(gains, prices, bids)
    bound = min(prices_bound, bound_by_sizes(looser, gains, prices, bids))
    inverse, demand = 1 / np.maximum(problem.gain, NOTHING), np.empty((cvs, 6))
    for v in range(cvs):
        demand[v] = demand_of(problem, v)
    scale = problem.floor.sum() + 1e-300, abs(prices_bound) + 1e-300
    return Survey(Ground(problem.gain, inverse, demand, scale), gains, prices, bids, prices_bound, bound)


@kernel
def owners_by_worth(problem, found, owner):
    """Give every pRB to the CV with the largest worth, or to the largest w·g if it is worth 0 to all CVs."""
    most = np.full(len(owner), -np.inf)
    for v in range(len(problem.weight)):
        for prb in range(len(owner)):
            worth = found.bids.worth[v, prb]
            if found.bids.best[prb] <= 0:
                worth = found.prices.weight[v] * problem.gain[v, prb]
            if worth > most[prb]:
                most[prb], owner[prb] = worth, v


@kernel
def search_owners(ground, holdings, market, enough):
    """Move and swap pRBs until nothing improves, the effort is spent, or the value is enough and no floor unmet.

    Returns (deficit, value).
    """
    owner, now = holdings.owner, market.now
    cvs, prbs = market.worth.shape
    fill_lists(ground, holdings)
    for v in range(cvs):
        now[v] = outcome(ground, holdings, v, -1, -1)
    deficit, value = totals(now)
    effort, unchanged, prb, aim, u, v = EFFORT * prbs, 0, 0, -1, -1, -1
    while unchanged < prbs and effort > 0 and not (deficit <= 0 and value >= enough):
        if unchanged == 0:  # the CVs u and v have exchanged pRBs
            previous, aim = aim, 0 if deficit > EPS * ground.scale[0] else 1
            for cv in range(cvs):
                if cv in (u, v) or aim != previous:
                    offer(ground, holdings, market, cv, aim)
        u = owner[prb]
        for cv in range(cvs):
            market.column[cv] = market.worth[cv, prb]
        v, spent = move_one(ground, holdings, market, prb, aim)
        effort -= spent
        if v < 0:
            v, spent = swap_one(ground, holdings, market, prb, aim)
            effort -= spent
        unchanged += 1
        if v >= 0:
            unchanged = 0
            deficit, value = totals(now)
        prb = (prb + 1) % prbs
    return deficit, value


@kernel
def totals(now):
    """The total deficit and value of these outcomes."""
    deficit, value = 0.0, 0.0
    for v in range(len(now)):
        deficit += now[v, 0]
        value += now[v, 1]
    return deficit, value


@kernel
def one_each(ground, owner):
    """Give every CV one pRB so that the total deficit is least (then the value largest); the rest keep their owner.

    Moving one or two pRBs at a time can miss this where almost every CV has just one.
    """
    cvs, prbs = ground.gain.shape
    value, column = np.empty((cvs, prbs)), np.empty(cvs, np.int64)
    for v in range(cvs):
        cv = demand_in(ground.demand, v)
        for prb in range(prbs):
            rate, spent = on_one(ground.gain[v, prb], cv)
            worth, deficit = cv.weight * rate - cv.price * spent, max(0.0, cv.floor - rate)
            value[v, prb] = 1e-6 * worth / ground.scale[1] - deficit / ground.scale[0]
    assign(value, column)
    for v in range(cvs):
        owner[column[v]] = v
