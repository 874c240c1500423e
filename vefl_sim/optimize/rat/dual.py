"""Prices for the RAT sub-problem: the Lagrangian dual, an upper bound for any number of pRBs.

Price the power of each CV (p = λ + μ) and weight its rate (w = a + ν − ξ: higher below the floor, lower at the cap).
Then every pRB is a separate problem, won by the CV with the largest worth h, and with L = w/p

    D = Σ_z max_v h_vz + Σ_v (p_v − λ)·P_v + (a_v − w_v)·(cap_v if w_v < a_v else floor_v),
    h = w·ln(gL) − p·(L − 1/g) where gL > 1, else 0,

bounds every allocation that meets the floors, whatever the prices. As in water.py, levels are measured from 1/g of a
CV's best pRB, x = L − 1/g_b, which is exact at any SNR: ln(gL) = ln(1 + g_b·x) − ln(g_b/g) and L − 1/g = x − d.

A tighter bound (`bound_by_sizes`) is what a set of n pRBs can be worth to a CV, for each n. The bound D lets a CV
average over sets: it may send much on a pRB that it wins only in part. But a CV owns a whole number of pRBs, and with
few pRBs per CV that is most of the gap. So keep the prices π_z = max_u h_uz of pRBs and bound what a CV can gain by
buying a set S at these prices,

    Σ_z π_z + Σ_v max_n B_vn,   B_vn ≥ value_v(S) − Σ_{z∈S} π_z for all S of n pRBs that meet the floor,

where for any w > 0 and p ≥ λ, with h and the terms of the relaxed constraints as above,

    B_vn = Σ (the n largest h_vz − π_z) + (p − λ)·P + (a − w)·(cap if w < a else floor).

The best w and p differ from size to size: they follow from the water level on the n pRBs that suit the CV best. A
single pRB is evaluated exactly. The largest size stands for all larger ones.
"""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.problem import MET, NOTHING, SlotProblem
from vefl_sim.optimize.rat.water import demand_of, log_1p, on_one, water_fill

STEPS, FEWER_STEPS, LARGE_SIZE = 50, 30, 10_000  # at most; fewer where V·Z exceeds LARGE_SIZE
PATIENCE, PROGRESS = 25, 1e-4  # stop after PATIENCE steps without a relative improvement of PROGRESS
FIRST_SOFTNESS, SOFTNESS = 0.5, 0.1  # of the mean worth of a pRB: CVs this close to the best share the pRB
DIVERGED = 0.02  # if the bound is worse than the best one by this share, return to that one, with smaller steps
FIRST_STEP, MAX_STEP = 0.1, 0.6  # step lengths in ln w and ln L


class Gains(NamedTuple):
    """Gains relative to the best pRB of each CV."""

    best: Floats  # g_b, shape (V,)
    distance: Floats  # d = 1/g − 1/g_b, shape (V, Z)
    log_ratio: Floats  # ln(g_b/g), shape (V, Z)


class Prices(NamedTuple):
    """The prices of the power and the weights of the rate, one per CV."""

    weight: Floats  # w
    level: Floats  # x, where p = w/(x + 1/g_b)


class Bids(NamedTuple):
    """The worth of the pRBs and the demands that follow from it."""

    worth: Floats  # h, shape (V, Z)
    best: Floats  # max_v h, shape (Z,)
    rate: Floats  # shape (V,)
    spent: Floats  # shape (V,)


@kernel
def relative_gains(gain):
    """The `Gains` of a (V, Z) array of gains."""
    best, distance, log_ratio = np.empty(len(gain)), np.empty(gain.shape), np.empty(gain.shape)
    for v in range(len(gain)):
        best[v] = max(gain[v].max(), NOTHING)
        for z in range(gain.shape[1]):
            g = max(gain[v, z], NOTHING)
            ratio = (best[v] - g) / g
            distance[v, z], log_ratio[v, z] = ratio / best[v], log_1p(ratio)
    return Gains(best, distance, log_ratio)


@kernel
def power_price(gains, prices, v):
    """p = w/L of CV v."""
    return prices.weight[v] * gains.best[v] / (1 + gains.best[v] * prices.level[v])


@kernel
def fill_worths(gains, prices, bids):
    """Fill worth h (V, Z) and its maximum over the CVs, best (Z,); returns Σ_z best."""
    cvs, prbs = bids.worth.shape
    best = bids.best
    best[:] = 0.0
    for v in range(cvs):
        row = bids.worth[v]
        fill_worth(gains, v, prices.weight[v], prices.level[v], row)
        for z in range(prbs):
            best[z] = max(best[z], row[z])
    return best.sum()


@kernel
def fill_worth(gains, v, weight, x, row):
    """Fill the worth h (Z,) of the pRBs to CV v at this weight and level."""
    price, top = weight * gains.best[v] / (1 + gains.best[v] * x), np.log1p(gains.best[v] * max(x, 0.0))
    distances, ratios = gains.distance[v], gains.log_ratio[v]
    for z in range(len(row)):
        h = weight * (top - ratios[z]) - price * (x - distances[z])
        row[z] = h if x > distances[z] else 0.0


@kernel
def fill_demands(gains, prices, softness, bids, near, share):
    """Fill rate and power (V,) if the CVs near the best one share each pRB: smooth prices need a smooth demand.

    A share is ∝ (h − best + softness)²₊, so few CVs share a pRB; those (CV, pRB) pairs are listed first, in the arrays
    `near` and `share` of V·Z entries.
    """
    cvs, prbs = bids.worth.shape
    total, least = np.zeros(prbs), np.maximum(bids.best - softness, 0.0)
    pairs = 0
    for v in range(cvs):
        row = bids.worth[v]
        for z in range(prbs):
            if row[z] > least[z]:
                near[pairs] = v * prbs + z
                share[pairs] = ((row[z] - least[z]) / softness) ** 2
                total[z] += share[pairs]
                pairs += 1
    top = np.log1p(gains.best * np.maximum(prices.level, 0.0))
    bids.rate[:], bids.spent[:] = 0.0, 0.0
    for index in range(pairs):
        v, z = near[index] // prbs, near[index] % prbs
        part = share[index] / max(total[z], 1e-300)
        bids.rate[v] += part * (top[v] - gains.log_ratio[v, z])
        bids.spent[v] += part * (prices.level[v] - gains.distance[v, z])


@kernel
def slope_of_weight(above_floor, above_cap, weight, nominal):
    """∂D/∂w: rate − floor if w > a, rate − cap if w < a; zero at w = a if the rate lies between floor and cap."""
    if weight > nominal or (weight == nominal and above_floor < 0):
        return above_floor
    if weight < nominal or above_cap > 0:
        return above_cap
    return 0.0


@kernel
def next_step(slope, previous, step):
    """The next step length (Rprop): longer while the slope keeps its sign, half when the sign changes."""
    agreement = np.sign(slope) * np.sign(previous)
    if agreement < 0:
        return 0.5 * step
    return min(MAX_STEP, 1.3 * step) if agreement > 0 else step


@kernel
def highest_level(problem, gains, weight, v):
    """The level at which p = λ: p never falls below λ."""
    return weight / problem.price - 1 / gains.best[v] if problem.price > 0 else np.inf


@kernel
def next_level(x, inverse, power, step):
    """x after a step in ln L that is limited relative to x: at a low SNR, 1/g and with it L is far larger than x."""
    if step <= 0:
        return max(0.5 * x, x + (x + inverse) * np.expm1(step))
    return min(x + (x + inverse) * np.expm1(step), max(x, power) * np.exp(step))


@kernel
def move(problem, gains, bids, prices, slopes, steps):
    """Move w and x of every CV one step down their slopes.

    Filled, with a row for ln w and one for ln L, shape (2, V): the slopes, and the step lengths that follow from their
    changes of sign.
    """
    for v in range(len(prices.weight)):
        w, x, nominal = prices.weight[v], prices.level[v], problem.weight[v]
        slack = problem.power[v] - bids.spent[v]
        pinned = slack >= 0 and x >= highest_level(problem, gains, w, v)
        rate = bids.rate[v] + (0.0 if pinned else slack * power_price(gains, prices, v) / w)
        slope = slope_of_weight(rate - problem.floor[v], rate - problem.cap[v], w, nominal), -slack
        for which in range(2):
            steps[which, v] = next_step(slope[which], slopes[which, v], steps[which, v])
            slopes[which, v] = slope[which]
        next_w = w * np.exp(-np.sign(slope[0]) * steps[0, v])
        if (next_w - nominal) * (w - nominal) < 0:
            next_w = nominal
        prices.weight[v] = min(max(next_w, 1e-6 * nominal), 1e6 * nominal)
        level = next_level(x, 1 / gains.best[v], problem.power[v], -np.sign(slope[1]) * steps[1, v])
        prices.level[v] = min(level, highest_level(problem, gains, prices.weight[v], v))


@kernel
def constraint_terms(problem, gains, prices):
    """The part of D that does not depend on the pRBs: the terms of the relaxed constraints P_max, floors and caps."""
    total = 0.0
    for v in range(len(prices.weight)):
        extra = problem.weight[v] - prices.weight[v]
        total += max(0.0, power_price(gains, prices, v) - problem.price) * problem.power[v]
        total += extra * (problem.cap[v] if extra > 0 else problem.floor[v])
    return total


@kernel
def bounded(problem, gains):
    """The problem with looser weights and tighter caps, which serve the prices better and keep the bound valid.

    A weight a above 0 only loosens the bound. No CV can send more than if all pRBs were as good as its best one, so a
    cap above that is lowered to it.
    """
    prbs = problem.gain.shape[1]
    weight = np.maximum(problem.weight, 1e-12 * problem.weight.max() + 1e-200)
    cap = np.minimum(problem.cap, prbs * np.log1p(gains.best * problem.power / prbs))
    return SlotProblem(problem.gain, weight, problem.price, problem.power, problem.floor, cap, problem.mean)


@kernel
def least_bound(problem, gains):
    """Minimise D of a problem that is `bounded`; returns (D, the best prices, the bids at these).

    Each step moves ln w and ln L of every CV by the sign of their own slopes, so units and scales do not matter. CVs
    that outbid each other in turn would drive all prices up, hence the return to the best prices.
    """
    cvs, prbs = problem.gain.shape
    prices, best = Prices(problem.weight.copy(), np.empty(cvs)), Prices(np.empty(cvs), np.empty(cvs))
    for v in range(cvs):  # P_max spread over Z/V average pRBs
        first = min(problem.power[v] * cvs / prbs + gains.distance[v].mean(), problem.power[v]) + 1e-30
        prices.level[v] = min(first, highest_level(problem, gains, prices.weight[v], v))
    best.weight[:], best.level[:] = prices.weight, prices.level  # which stay if D is never finite
    bids = Bids(np.empty((cvs, prbs)), np.empty(prbs), np.empty(cvs), np.empty(cvs))
    slopes, steps = np.zeros((2, cvs)), np.full((2, cvs), FIRST_STEP)
    near, share = np.empty(cvs * prbs, np.int64), np.empty(cvs * prbs)
    limit = STEPS if cvs * prbs <= LARGE_SIZE else FEWER_STEPS
    bound, stalled, restart_step = np.inf, 0, FIRST_STEP
    for step in range(limit):
        prb_total = fill_worths(gains, prices, bids)
        total = prb_total + constraint_terms(problem, gains, prices)
        stalled = 0 if total < bound - PROGRESS * abs(total) else stalled + 1
        if total < bound:
            bound = total
            best.weight[:], best.level[:] = prices.weight, prices.level
        elif total > bound + DIVERGED * abs(bound):
            prices.weight[:], prices.level[:] = best.weight, best.level
            restart_step *= 0.5
            steps[:], slopes[:] = restart_step, 0.0
            prb_total = fill_worths(gains, prices, bids)
        if stalled > PATIENCE:
            break
        softness = FIRST_SOFTNESS * (SOFTNESS / FIRST_SOFTNESS) ** min(1.0, 3 * step / limit) * prb_total / prbs
        fill_demands(gains, prices, softness + 1e-300, bids, near, share)
        move(problem, gains, bids, prices, slopes, steps)
    fill_worths(gains, best, bids)
    return bound, best, bids


SIZES = 6  # sets of 1 … SIZES pRBs, and larger ones


@kernel
def bound_by_sizes(problem, gains, prices, bids):
    """The bound; `bids` are those at these prices."""
    total = bids.best.sum()
    for v in range(len(problem.weight)):
        total += _largest_gain(problem, gains, prices, bids, v)
    return total


@kernel
def _largest_gain(problem, gains, prices, bids, v):
    """max_n B_vn: the most that CV v can gain by buying pRBs at their prices, whatever their number.

    B is lowered at the size where it is largest, until that has been done before: other sizes do not matter.
    """
    cv, gain = demand_of(problem, v), problem.gain[v]
    sizes = min(SIZES, len(gain))
    most, lowered, top, watts = np.full(sizes, np.inf), np.zeros(sizes, np.bool_), np.empty(sizes), np.empty(len(gain))
    best = _best_suited(bids, v, sizes, top)
    terms = _lower(problem, gains, bids, v, prices.weight[v], prices.level[v], top, most)
    size = np.argmax(most)
    while not lowered[size]:
        lowered[size] = True
        if size == 0:
            most[0] = min(most[0], _alone(cv, gain, bids, v, terms, best[0]))
        else:
            chosen = best[: size + 1].copy()
            rate, _ = water_fill(gain, chosen, cv, watts)
            if rate >= cv.floor * (1 - MET) and watts[chosen[0]] > 0:
                x = watts[chosen[0]] + gains.distance[v, chosen[0]]
                at_level = cv.price * (1 + gains.best[v] * x) / gains.best[v]
                weight = at_level if at_level > 0 and (rate >= cv.cap or at_level > cv.weight) else cv.weight
                _lower(problem, gains, bids, v, weight, x, top, most)
        size = np.argmax(most)
    return max(most[size], 0.0 if cv.floor <= 0 else -np.inf)


@kernel
def _alone(cv, gain, bids, v, terms, first):
    """The most that a CV can gain by buying one pRB that meets its floor; worth − π + terms is an upper bound of it."""
    most = -np.inf
    for index in range(-1, len(gain)):
        prb = index if index >= 0 else first
        if bids.worth[v, prb] - bids.best[prb] + terms > most:
            rate, spent = on_one(gain[prb], cv)
            if rate >= cv.floor * (1 - MET):
                most = max(most, cv.weight * rate - cv.price * spent - bids.best[prb])
    return most


@kernel
def _lower(problem, gains, bids, v, weight, x, top, most):
    """Lower B_vn of all sizes to what this weight and the price of this level prove; x = L − 1/g_b as in dual.py.

    Returns the terms of the relaxed constraints, infinite if this weight and this level prove nothing.
    """
    extra, price = problem.weight[v] - weight, weight * gains.best[v] / (1 + gains.best[v] * x)
    worth, sizes = np.empty(len(bids.best)), len(top)
    fill_worth(gains, v, weight, x, worth)
    top[:], beyond = -np.inf, 0.0
    for prb in range(len(worth)):
        net = worth[prb] - bids.best[prb]
        if not np.isfinite(net):
            return np.inf
        if net > top[sizes - 1]:
            beyond += max(0.0, top[sizes - 1])
            _insert(net, top)
        else:
            beyond += max(0.0, net)
    terms = max(0.0, price - problem.price) * problem.power[v]
    terms += extra * (problem.cap[v] if extra > 0 else problem.floor[v] * (1 - 2 * MET))
    total = terms
    for size in range(sizes):
        total += top[size]
        most[size] = min(most[size], total + (beyond if size == sizes - 1 else 0.0))
    return terms


@kernel
def _best_suited(bids, v, sizes, top):
    """The pRBs whose loss is least if CV v owns them."""
    best = np.arange(sizes)  # of which some stay if worths are not numbers, as they may be at absurd prices
    top[:] = -np.inf
    for prb in range(len(bids.best)):
        net = bids.worth[v, prb] - bids.best[prb]
        if net > top[sizes - 1]:
            at = _insert(net, top)
            best[at + 1 :] = best[at : sizes - 1].copy()
            best[at] = prb
    return best


@kernel
def _insert(value, top):
    """Insert a value into a list sorted from the largest, whose last entry is dropped; returns its place."""
    at = len(top) - 1
    while at > 0 and top[at - 1] < value:
        top[at] = top[at - 1]
        at -= 1
    top[at] = value
    return at
