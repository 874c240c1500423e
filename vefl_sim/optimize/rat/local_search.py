"""Local search for the RAT sub-problem: move a pRB to another CV, or swap two.

Each CV has a list of its pRBs, best gain first, so the effect of one pRB more or less is computed in one pass over that
list. Two outcomes are compared lexicographically: smaller total deficit first, then larger objective.
"""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.water import Demand, PrbsInUse, exp_m1, is_useful, log_1p, water_level

EPS = 1e-12  # relative: smaller improvements are rounding
LARGE_PRODUCT = 1e150  # a product of ratios of gains is kept up to this size before its logarithm is taken


class Ground(NamedTuple):
    """What the search knows of the slot: one array for all demands, because each array costs time in every call."""

    gain: Floats  # shape (V, Z)
    inverse: Floats  # 1/g, shape (V, Z)
    demand: Floats  # the fields of `Demand`, shape (V, 6)
    loss: Floats  # what the Lagrangian loses if CV v owns pRB z, shape (V, Z)
    bound: float
    scale: tuple[float, float]  # typical deficit and value


class Holdings(NamedTuple):
    """Who owns which pRBs."""

    owner: Ints  # shape (Z,)
    held: Ints  # the pRBs of each CV, best gain first; shape (V, Z)
    size: Ints  # how many each CV has; shape (V,)


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
    """(deficit, a·r − λP) of CV v with the pRBs it holds, without `drop` and with `add` (−1: none).

    A pRB is in use if 1/g lies below the level that spends P_max and below a/λ. Only if cap or floor turns out to bind,
    a second pass finds the pRBs in use at that rate. Ratios of gains are multiplied, 1 + e = Π g_b/g, which leaves one
    logarithm for all.
    """
    gain, inverse, held, size = ground.gain, ground.inverse, holdings.held, holdings.size[v]
    cv = demand_in(ground.demand, v)
    price, target, use, x, rate = cv.price, np.inf, PrbsInUse(0.0, 0.0, 0.0, 0.0, 0.0), 0.0, 0.0
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
                    return cv.floor, 0.0
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
            return cv.floor, 0.0
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
    return max(0.0, cv.floor - rate), cv.weight * rate - cv.price * (use.number * x - use.spread)


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
def evaluate_all(ground, holdings, now):
    """Fill now (V, 2) = (deficit, value) of each CV; returns their sums."""
    for v in range(len(now)):
        now[v] = outcome(ground, holdings, v, -1, -1)
    return now[:, 0].sum(), now[:, 1].sum()


@kernel
def greedy(ground, holdings):
    """Give each pRB in turn to the CV that gains most from it: first deficit, then value. Returns their sums."""
    cvs, prbs = ground.loss.shape
    holdings.size[:] = 0
    now = np.empty((cvs, 2))
    evaluate_all(ground, holdings, now)
    for prb in range(prbs):
        best_cv, deficit, value = -1, 0.0, 0.0
        for v in range(cvs):
            after = outcome(ground, holdings, v, -1, prb)
            deficit_change, value_change = after[0] - now[v, 0], after[1] - now[v, 1]
            if best_cv < 0 or better(ground.scale, deficit_change - deficit, value_change - value):
                best_cv, deficit, value = v, deficit_change, value_change
        add_prb(ground, holdings, best_cv, prb)
        now[best_cv, 0] += deficit
        now[best_cv, 1] += value
    return now[:, 0].sum(), now[:, 1].sum()


@kernel
def move_one(ground, holdings, prb, allowed, now):
    """Move a pRB to the CV where it improves the total most, if any does; returns (moved, evaluations)."""
    u = holdings.owner[prb]
    deficit_without, value_without = outcome(ground, holdings, u, prb, -1)
    best_cv, deficit, value, evaluations = -1, 0.0, 0.0, 1
    for v in range(len(allowed)):
        if v == u or not allowed[v]:
            continue
        after = outcome(ground, holdings, v, -1, prb)
        evaluations += 1
        deficit_change = deficit_without - now[u, 0] + after[0] - now[v, 0]
        value_change = value_without - now[u, 1] + after[1] - now[v, 1]
        if better(ground.scale, deficit_change - deficit, value_change - value):
            best_cv, deficit, value = v, deficit_change, value_change
    if best_cv >= 0:
        remove_prb(holdings, u, prb)
        add_prb(ground, holdings, best_cv, prb)
        now[u, 0], now[u, 1] = deficit_without, value_without
        now[best_cv] = outcome(ground, holdings, best_cv, -1, -1)
    return best_cv >= 0, evaluations


@kernel
def swap_two(ground, holdings, one, two, now):
    """Swap two pRBs of different CVs if that improves the total; returns whether it did."""
    u, v = holdings.owner[one], holdings.owner[two]
    after_u, after_v = outcome(ground, holdings, u, one, two), outcome(ground, holdings, v, two, one)
    deficit_change = after_u[0] - now[u, 0] + after_v[0] - now[v, 0]
    if not better(ground.scale, deficit_change, after_u[1] - now[u, 1] + after_v[1] - now[v, 1]):
        return False
    remove_prb(holdings, u, one)
    remove_prb(holdings, v, two)
    add_prb(ground, holdings, u, two)
    add_prb(ground, holdings, v, one)
    now[u], now[v] = after_u, after_v
    return True


@kernel
def improve(ground, holdings, near, effort, enough):
    """Move and swap until nothing improves, `effort` evaluations are spent, or the value is enough and no floor unmet.

    Returns (deficit, value, effort left). No allocation is worth more than bound − Σ loss of its owners, so an exchange
    that lowers this below the present value, or by more than `near`, is not tried. While a floor is unmet, only
    exchanges with a CV that misses its floor are tried. Each pass of the loop spends an evaluation or more, and at most
    V + 2Z of them.
    """
    loss, owner = ground.loss, holdings.owner
    cvs, prbs = loss.shape
    now, allowed = np.empty((cvs, 2)), np.empty(cvs, np.bool_)
    deficit, value = evaluate_all(ground, holdings, now)
    total_loss = owners_loss(ground, owner)
    unchanged, one = 0, 0
    while unchanged < prbs and effort > 0 and not (deficit <= 0 and value >= enough):
        floor_missed = deficit > EPS * ground.scale[0]
        room = min(near, ground.bound - total_loss - value + EPS * ground.scale[1])
        present_loss = loss[owner[one], one]
        for v in range(cvs):
            allowed[v] = now[v, 0] > 0 if floor_missed else loss[v, one] - present_loss <= room
        changed, evaluations = move_one(ground, holdings, one, allowed, now)
        effort -= evaluations
        for two in range(prbs):
            if changed:
                break
            u, v = owner[one], owner[two]
            if u != v and (
                now[u, 0] + now[v, 0] > 0
                if floor_missed
                else loss[v, one] + loss[u, two] - present_loss - loss[v, two] <= room
            ):
                changed = swap_two(ground, holdings, one, two, now)
                effort -= 2
        if changed:
            deficit, value, total_loss, unchanged = now[:, 0].sum(), now[:, 1].sum(), owners_loss(ground, owner), 0
        unchanged += 1
        one = (one + 1) % prbs
    return deficit, value, effort


@kernel
def owners_loss(ground, owner):
    """Σ of the losses of the owners."""
    total = 0.0
    for prb in range(len(owner)):
        total += ground.loss[owner[prb], prb]
    return total
