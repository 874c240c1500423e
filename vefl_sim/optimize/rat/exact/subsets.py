"""The RAT sub-problem solved exactly for up to 12 pRBs: a value for every subset, then dynamic programming over CVs.

Sort a CV's pRBs by gain: the parent of a subset is the subset without its worst pRB. If the parent's water level lies
above 1/g of that pRB, all pRBs of the subset are in use and its level has a closed form; else it is worth as much as
the parent. So every subset costs O(1), and dynamic programming splits the pRBs among the CVs in O(V·3^Z).
"""

import numpy as np

from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.water import PrbsInUse, behind, by_gain, is_useful, only, water_level


@kernel
def subset_values(gain, cv, value, deficit):
    """Fill `value[S]` = a·r − λ·P and `deficit[S]` = (floor − r)⁺ for every set S of pRBs of one CV (bit z: pRB z)."""
    prbs = len(gain)
    order = np.arange(prbs)
    by_gain(gain, order)
    size = 1 << prbs - 1
    mask, level = np.empty(size, np.int64), np.empty(size)
    count, spread, log_spread = np.ones(size), np.zeros(size), np.zeros(size)
    value[:], deficit[:] = 0.0, cv.floor
    for first in range(prbs):  # sets whose best pRB this is, numbered by the worse pRBs in them
        best = gain[order[first]]
        if not is_useful(best, cv):
            break  # nor is any worse pRB
        alone = only(best, cv)
        mask[0] = 1 << order[first]
        level[0] = _evaluate(alone, cv, mask[0], value, deficit)
        for worst in range(first + 1, prbs):
            distance, log_ratio = behind(best, gain[order[worst]])
            bit, number = 1 << order[worst], 1 << worst - first - 1
            for parent in range(number):
                subset, members = parent | number, mask[parent] | bit
                mask[subset] = members
                if level[parent] > distance:
                    n, d, log = count[parent] + 1, spread[parent] + distance, log_spread[parent] + log_ratio
                    count[subset], spread[subset], log_spread[subset] = n, d, log
                    use = PrbsInUse(n, best, alone.ceiling, d, log)
                    level[subset] = _evaluate(use, cv, members, value, deficit)
                else:
                    count[subset], level[subset] = count[parent], level[parent]
                    spread[subset], log_spread[subset] = spread[parent], log_spread[parent]
                    value[members], deficit[members] = value[mask[parent]], deficit[mask[parent]]


@kernel
def _evaluate(use, cv, members, value, deficit):
    """Fill value and deficit of one set; returns its water level."""
    x, rate = water_level(use, cv)
    value[members] = cv.weight * rate - cv.price * (use.number * x - use.spread)
    deficit[members] = max(0.0, cv.floor - rate)
    return x


@kernel
def split(value, sizes, least, share):
    """Split all pRBs among the CVs in the best way: fill `share[v]` with the set of CV v; returns the total value.

    value (V ≥ 2, 2^Z), sizes = popcount. Every CV gets at least `least` (0 or 1) pRBs: with 1, a set of the first
    v + 1 CVs has v + 1 pRBs or more and leaves one for each of the others, which saves much of the work.
    """
    cvs, size = value.shape
    best = value.copy()  # best[v, S]: largest value of splitting the set S among the CVs 0 … v
    own = value.copy()
    if least:
        own[:, 0] = -np.inf
        best[0, 0] = -np.inf
    prbs = sizes[size - 1]
    for v in range(1, cvs - 1):
        _join(own[v], best[v - 1], sizes, least * (v + 1), prbs - least * (cvs - 1 - v), best[v])
    share[cvs - 1], total = _best_part(own[cvs - 1], best[cvs - 2], size - 1)
    rest = (size - 1) ^ share[cvs - 1]
    for v in range(cvs - 2, 0, -1):
        share[v], _ = _best_part(own[v], best[v - 1], rest)
        rest ^= share[v]
    share[0] = rest
    return total


@kernel
def _join(one, other, sizes, fewest, most, joined):
    """joined[S] = max over parts of S of one[part] + other[S without part], for sets of `fewest` to `most` pRBs.

    The two lowest pRBs are unrolled, so that four sets share one loop over the parts of the other pRBs: twice as fast.
    """
    joined[:] = -np.inf
    step = np.uint64(1)  # with unsigned indices numba omits the test for negative ones
    for high in range(len(one) >> 2):
        if sizes[high] > most or sizes[high] + 2 < fewest:
            continue
        whole = part = np.uint64(high)
        top0 = top1 = top2 = top3 = -np.inf
        while True:
            a, b = part << np.uint64(2), (whole ^ part) << np.uint64(2)
            a0, a1, a2, a3 = one[a], one[a + step], one[a + np.uint64(2)], one[a + np.uint64(3)]
            b0, b1, b2, b3 = other[b], other[b + step], other[b + np.uint64(2)], other[b + np.uint64(3)]
            top0 = max(top0, a0 + b0)
            top1 = max(top1, max(a0 + b1, a1 + b0))
            top2 = max(top2, max(a0 + b2, a2 + b0))
            top3 = max(top3, max(max(a0 + b3, a3 + b0), max(a1 + b2, a2 + b1)))
            if part == 0:
                break
            part = (part - step) & whole
        at = high << 2
        joined[at], joined[at + 1], joined[at + 2], joined[at + 3] = top0, top1, top2, top3


@kernel
def _best_part(one, other, whole):
    """The part of `whole` with the largest one[part] + other[rest], and that value."""
    top, choice = one[0] + other[whole], 0
    part = whole
    while part:
        worth = one[part] + other[whole ^ part]
        if worth > top:
            top, choice = worth, part
        part = (part - 1) & whole
    return choice, top
