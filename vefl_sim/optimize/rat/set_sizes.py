"""A tighter bound for the RAT sub-problem: what a set of n pRBs can be worth to a CV, for each n.

The bound D of dual.py lets a CV average over sets: it may send much on a pRB that it wins only in part. But a CV owns
a whole number of pRBs, and with few pRBs per CV that is most of the gap. So keep the prices π_z = max_u h_uz of pRBs
and bound what a CV can gain by buying a set S at these prices,

    Σ_z π_z + Σ_v max_n B_vn,   B_vn ≥ value_v(S) − Σ_{z∈S} π_z for all S of n pRBs that meet the floor,

where for any w > 0 and p ≥ λ, with h and the terms of the relaxed constraints as in dual.py,

    B_vn = Σ (the n largest h_vz − π_z) + (p − λ)·P + (a − w)·(cap if w < a else floor).

The best w and p differ from size to size: they follow from the water level on the n pRBs that suit the CV best. A
single pRB is evaluated exactly. The largest size stands for all larger ones.
"""

import numpy as np

from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.problem import MET
from vefl_sim.optimize.rat.water import demand_of, on_one, water_fill

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
    distances, ratios, sizes = gains.distance[v], gains.log_ratio[v], len(top)
    at_best = np.log1p(gains.best[v] * max(x, 0.0))
    top[:], beyond = -np.inf, 0.0
    for prb in range(len(distances)):
        worth = weight * (at_best - ratios[prb]) - price * (x - distances[prb]) if x > distances[prb] else 0.0
        net = worth - bids.best[prb]
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
