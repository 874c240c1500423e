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

from vefl_sim.core.kernel import inner_float_kernel as kernel
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
    """max_n B_vn: the most that CV v can gain by buying pRBs at their prices, whatever their number."""
    cv, gain = demand_of(problem, v), problem.gain[v]
    prbs = len(gain)
    sizes = min(SIZES, prbs)
    most, top, watts = np.full(sizes, np.inf), np.empty(sizes), np.empty(prbs)
    best = _best_suited(bids, v, sizes, top)
    for size in range(2, sizes + 1):
        rate, _ = water_fill(gain, best[:size], cv, watts)  # sorts them, which does not matter here
        if rate >= cv.floor * (1 - MET) and watts[best[0]] > 0:
            x = watts[best[0]] + gains.distance[v, best[0]]
            at_level = cv.price * (1 + gains.best[v] * x) / gains.best[v]
            weight = at_level if at_level > 0 and (rate >= cv.cap or at_level > cv.weight) else cv.weight
            _lower(problem, gains, bids, v, weight, x, top, most)
    _lower(problem, gains, bids, v, prices.weight[v], prices.level[v], top, most)
    alone = -np.inf
    for prb in range(prbs):
        rate, spent = on_one(gain[prb], cv)
        if rate >= cv.floor * (1 - MET):
            alone = max(alone, cv.weight * rate - cv.price * spent - bids.best[prb])
    most[0] = min(most[0], alone)
    return max(most.max(), 0.0 if cv.floor <= 0 else -np.inf)


@kernel
def _lower(problem, gains, bids, v, weight, x, top, most):
    """Lower B_vn of all sizes to what this weight and the price of this level prove; x = L − 1/g_b as in dual.py."""
    extra, price = problem.weight[v] - weight, weight * gains.best[v] / (1 + gains.best[v] * x)
    distances, ratios, sizes = gains.distance[v], gains.log_ratio[v], len(top)
    at_best = np.log1p(gains.best[v] * max(x, 0.0))
    top[:], beyond = -np.inf, 0.0
    for prb in range(len(distances)):
        worth = weight * (at_best - ratios[prb]) - price * (x - distances[prb]) if x > distances[prb] else 0.0
        net = worth - bids.best[prb]
        if not np.isfinite(net):
            return  # this weight and this level prove nothing
        if net > top[sizes - 1]:
            beyond += max(0.0, top[sizes - 1])
            _insert(net, top)
        else:
            beyond += max(0.0, net)
    total = max(0.0, price - problem.price) * problem.power[v]
    total += extra * (problem.cap[v] if extra > 0 else problem.floor[v] * (1 - 2 * MET))
    for size in range(sizes):
        total += top[size]
        most[size] = min(most[size], total + (beyond if size == sizes - 1 else 0.0))


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
