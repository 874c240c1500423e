"""The RAT sub-problem for any number of pRBs: owners from prices, improved by local search, with an upper bound.

The local search moves a pRB to another CV, or swaps two.
Each CV has a list of its pRBs, best gain first, so the effect of one pRB more or less is computed in one pass over that
list. Two outcomes are compared lexicographically: smaller total deficit first, then larger objective. While a floor is
missed, the aim is the total deficit (aim 0), else the value (aim 1); bounds rule out almost all exchanges that would
not serve it, before any outcome is computed (`offer`).
"""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.dual import (
    Bids,
    Gains,
    Prices,
    bound_by_sizes,
    bounded,
    fill_worth,
    least_bound,
    relative_gains,
)
from vefl_sim.optimize.rat.exact import assign
from vefl_sim.optimize.rat.problem import NOTHING
from vefl_sim.optimize.rat.water import (
    Demand,
    PrbsInUse,
    demand_of,
    exp_m1,
    is_useful,
    log_1p,
    on_one,
    water_fill,
    water_level,
)

EPS = 1e-12  # relative: smaller improvements are rounding
LARGE_PRODUCT = 1e150  # a product of ratios of gains is kept up to this size before its logarithm is taken


class Ground(NamedTuple):
    """What the search knows of the slot: one array for all demands, because each array costs time in every call."""

    gain: Floats  # shape (V, Z)
    inverse: Floats  # 1/g, shape (V, Z)
    demand: Floats  # the fields of `Demand`, shape (V, 6)
    scale: tuple[float, float]  # typical deficit and value


class Holdings(NamedTuple):
    """Who owns which pRBs."""

    owner: Ints  # shape (Z,)
    held: Ints  # the pRBs of each CV, best gain first; shape (V, Z)
    size: Ints  # how many each CV has; shape (V,)


class Market(NamedTuple):
    """The present outcomes of all CVs, and bounds of what a pRB more or less would change: see `offer`."""

    gains: Gains
    now: Floats  # `outcome` of each CV, shape (V, 4)
    worth: Floats  # of each pRB to each CV, shape (V, Z)
    kept: Floats  # of each pRB to its owner, shape (Z,)
    column: Floats  # of the pRB in question to each CV, shape (V,)


@kernel
def new_market(gains):
    """Arrays for the market; nothing is offered."""
    cvs, prbs = gains.distance.shape
    return Market(gains, np.empty((cvs, 4)), np.empty((cvs, prbs)), np.empty(prbs), np.empty(cvs))


@kernel
def new_holdings(cvs, prbs):
    """Arrays for the holdings; nothing is owned."""
    return Holdings(np.zeros(prbs, np.int64), np.empty((cvs, prbs), np.int64), np.zeros(cvs, np.int64))


@kernel
def demand_in(table, v):
    """The demand of CV v, from the table of a `Ground`."""
    return Demand(table[v, 0], table[v, 1], table[v, 2], table[v, 3], table[v, 4], table[v, 5])


@kernel
def outcome(ground, holdings, v, drop, add):
    """(deficit, a·r − λP, x, w) of CV v with the pRBs it holds, without `drop` and with `add` (−1: none).

    The last two are the water level above 1/g of the best pRB and the weight of the rate, with its floor or cap.

    A pRB is in use if 1/g lies below the level that spends P_max and below a/λ. Only if cap or floor turns out to bind,
    a second pass finds the pRBs in use at that rate. Ratios of gains are multiplied, 1 + e = Π g_b/g, which leaves one
    logarithm for all.
    """
    gain, inverse, held, size = ground.gain, ground.inverse, holdings.held, holdings.size[v]
    cv = demand_in(ground.demand, v)
    price, target, use, x, rate = cv.price, np.inf, PrbsInUse(0.0, 0.0, 0.0, 0.0, 0.0), 0.0, 0.0
    inverse_best = 0.0
    for _ in range(2):
        at, extra, used, best, inverse_best, spread, excess, logs = 0, add, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        while at < size or extra >= 0:  # each step consumes a held pRB or the added one
            if extra >= 0 and (at == size or gain[v, extra] > gain[v, held[v, at]]):
                prb, extra = extra, -1
            else:
                prb = held[v, at]
                at += 1
                if prb == drop:
                    continue
            g = gain[v, prb]
            if used == 0:
                if not is_useful(g, cv):
                    return cv.floor, 0.0, 0.0, cv.weight
                best, inverse_best = g, inverse[v, prb]
            else:
                ratio = (best - g) * inverse[v, prb]
                distance = ratio * inverse_best
                if cv.power + spread <= used * distance or cv.weight * g <= price:
                    break
                if target < np.inf and exp_m1((target + logs + log_1p(excess)) / used) <= ratio:
                    break
                spread += distance
                excess += ratio + excess * ratio
                if excess > LARGE_PRODUCT:
                    logs, excess = logs + log_1p(excess), 0.0
            used += 1
        if used == 0:
            return cv.floor, 0.0, 0.0, cv.weight
        use = PrbsInUse(used, best, max(0.0, cv.price_level - inverse_best), spread, logs)
        if excess > 0:
            use = PrbsInUse(used, best, use.ceiling, spread, logs + log_1p(excess))
        x, rate = water_level(use, cv)
        if rate >= cv.cap:
            price, target = 0.0, cv.cap
        elif rate <= cv.floor and use.ceiling * used < cv.power + spread:
            price, target = 0.0, cv.floor
        else:
            break
    at_level = cv.price * (x + inverse_best)
    weight = at_level if rate >= cv.cap or at_level > cv.weight else cv.weight
    return max(0.0, cv.floor - rate), cv.weight * rate - cv.price * (use.number * x - use.spread), x, weight


@kernel
def better(scale, deficit, value):
    """Whether a change of (deficit, value) is an improvement; scale = (typical deficit, typical value)."""
    if abs(deficit) > EPS * scale[0]:
        return deficit < 0
    return value > EPS * scale[1]


@kernel
def add_prb(ground, holdings, v, prb):
    """Insert a pRB into the list of CV v, which becomes its owner."""
    gain, held, at = ground.gain[v], holdings.held[v], holdings.size[v]
    while at > 0 and gain[held[at - 1]] < gain[prb]:
        held[at] = held[at - 1]
        at -= 1
    held[at] = prb
    holdings.size[v] += 1
    holdings.owner[prb] = v


@kernel
def remove_prb(holdings, v, prb):
    """Remove a pRB from the list of CV v."""
    held, kept = holdings.held[v], 0
    for at in range(holdings.size[v]):
        held[kept] = held[at]
        kept += held[at] != prb
    holdings.size[v] = kept


@kernel
def fill_lists(ground, holdings):
    """Fill the pRB lists of all CVs from the owners."""
    holdings.size[:] = 0
    for prb in range(len(holdings.owner)):
        add_prb(ground, holdings, holdings.owner[prb], prb)


@kernel
def offer(ground, holdings, market, v, aim):
    """Fill the worths of CV v: bounds of what it gains with one more pRB, and of what it loses without one of its own.

    At its present water level and weight, the bound of dual.py for this CV alone is tight. One more pRB raises that
    bound by its worth h at these prices, one pRB less lowers it by h. If deficits count (aim 0), the rate of a CV that
    misses its floor has weight 1, that of the others 0.
    """
    deficit, _, x, weight = market.now[v]
    row, size = market.worth[v], holdings.size[v]
    if size == 0:
        cv = demand_in(ground.demand, v)
        for prb in range(len(row)):
            rate, spent = on_one(ground.gain[v, prb], cv)
            row[prb] = min(rate, cv.floor) if aim == 0 else cv.weight * rate - cv.price * spent
    elif aim == 0 and deficit <= 0:
        row[:] = 0.0
    else:
        level = x + market.gains.distance[v, holdings.held[v, 0]]
        fill_worth(market.gains, v, 1.0 if aim == 0 else weight, level, row)
    for at in range(size):
        market.kept[holdings.held[v, at]] = row[holdings.held[v, at]]


@kernel
def gain_in(aim, scale, before, after):
    """By how much an outcome is better than another: in its deficit (aim 0) or, if that does not rise, its value."""
    if aim == 0:
        return before[0] - after[0]
    return after[1] - before[1] if after[0] - before[0] <= EPS * scale[0] else -np.inf


@kernel
def move_one(ground, holdings, market, prb, aim):
    """Move a pRB to the CV where it improves the total most, if any does; returns (new owner or −1, evaluations).

    The most promising CV is tried first, then those that can still be better.
    """
    now, column, u = market.now, market.column, holdings.owner[prb]
    first, least = u, EPS * ground.scale[aim]
    for v in range(len(column)):
        if column[v] > column[first]:
            first = v
    if not column[first] > column[u] + least:
        return -1, 0
    without = outcome(ground, holdings, u, prb, -1)
    lost, evaluations = -gain_in(aim, ground.scale, now[u], without), 1
    best_cv, deficit, value = -1, 0.0, 0.0
    for index in range(-1, len(column)):
        v = index if index >= 0 else first
        if v == u or index == first or not column[v] > lost + max(least, value if aim == 1 else -deficit):
            continue
        after = outcome(ground, holdings, v, -1, prb)
        evaluations += 1
        deficit_change = without[0] - now[u, 0] + after[0] - now[v, 0]
        value_change = without[1] - now[u, 1] + after[1] - now[v, 1]
        if better(ground.scale, deficit_change - deficit, value_change - value):
            best_cv, deficit, value = v, deficit_change, value_change
    if best_cv >= 0:
        remove_prb(holdings, u, prb)
        add_prb(ground, holdings, best_cv, prb)
        now[u] = without
        now[best_cv] = outcome(ground, holdings, best_cv, -1, -1)
    return best_cv, evaluations


@kernel
def swap_one(ground, holdings, market, one, aim):
    """Swap a pRB with one of another CV if that improves the total; returns (new owner or −1, evaluations).

    The most promising swap is tried first.
    """
    owner, column, kept, u = holdings.owner, market.column, market.kept, holdings.owner[one]
    row, least = market.worth[u], kept[one] + EPS * ground.scale[aim]
    promising = 0
    for two in range(len(owner)):
        promising += column[owner[two]] + row[two] - kept[two] > least
    if promising == 0:
        return -1, 0
    first, most, evaluations = 0, -np.inf, 0
    for two in range(len(owner)):
        bound = column[owner[two]] + row[two] - kept[two]
        if bound > most:
            first, most = two, bound
    for index in range(-1, len(owner)):
        two = index if index >= 0 else first
        v = owner[two]
        if v != u and index != first and column[v] + row[two] - kept[two] > least:
            swapped, spent = swap_two(ground, holdings, market, one, two, aim)
            evaluations += spent
            if swapped:
                return v, evaluations
    return -1, evaluations


@kernel
def swap_two(ground, holdings, market, one, two, aim):
    """Swap two pRBs of different CVs if that improves the total; returns (whether it did, evaluations)."""
    u, v, now = holdings.owner[one], holdings.owner[two], market.now
    after_u = outcome(ground, holdings, u, one, two)
    if gain_in(aim, ground.scale, now[u], after_u) + market.column[v] - market.kept[two] <= 0:
        return False, 1
    after_v = outcome(ground, holdings, v, two, one)
    deficit_change = after_u[0] - now[u, 0] + after_v[0] - now[v, 0]
    if not better(ground.scale, deficit_change, after_u[1] - now[u, 1] + after_v[1] - now[v, 1]):
        return False, 2
    remove_prb(holdings, u, one)
    remove_prb(holdings, v, two)
    add_prb(ground, holdings, u, two)
    add_prb(ground, holdings, v, one)
    now[u], now[v] = after_u, after_v
    return True, 2


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
    gains = relative_gains(problem.gain)
    looser = bounded(problem, gains)
    prices_bound, prices, bids = least_bound(looser, gains)
    bound = min(prices_bound, bound_by_sizes(looser, gains, prices, bids))
    inverse, demand = 1 / np.maximum(problem.gain, NOTHING), np.empty((len(problem.gain), 6))
    for v in range(len(demand)):
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
