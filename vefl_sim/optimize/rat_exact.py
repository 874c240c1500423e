"""The RAT sub-problem solved exactly for up to 12 pRBs: a value for every subset, then a programme over CVs.

Sort a CV's pRBs by gain: the parent of a subset drops its worst pRB. If the parent's water level lies above 1/g
of that pRB, all pRBs of the subset are in use and its level is a closed form; else it is worth what the parent
is. So every subset costs O(1), and the programme splits the pRBs among the CVs in O(V·3^Z).
"""

import numpy as np
from numba import njit

from vefl_sim.optimize.water import level_of, pays

MAX_PRBS = 12


@njit(cache=True)
def subset_values(gain, weight, price, power, floor, cap, penalty, value):
    """Fill `value[S]` = a·r − λ·P − penalty·(floor − r)⁺ for every set S of pRBs of one CV (bit z of S: pRB z)."""
    prbs = len(gain)
    order = np.argsort(-gain)
    size = 1 << prbs
    dear = weight / price if price > 0 else np.inf
    used = np.zeros(size, np.int64)
    mask = np.zeros(size, np.int64)
    inverse_sum, log_sum, level, rate = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size)
    value[0] = -penalty * floor
    for worst in range(prbs):
        g = gain[order[worst]]
        inverse, logarithm = (1 / g, np.log(g)) if g > 0 else (np.inf, 0.0)
        for parent in range(1 << worst):
            subset = parent | 1 << worst
            mask[subset] = mask[parent] | 1 << order[worst]
            if pays(g, level[parent], used[parent] == 0, dear, power, floor, cap):
                used[subset] = used[parent] + 1
                inverse_sum[subset] = inverse_sum[parent] + inverse
                log_sum[subset] = log_sum[parent] + logarithm
                level[subset], rate[subset] = level_of(
                    used[subset], inverse_sum[subset], log_sum[subset], dear, power, floor, cap
                )
                spent = used[subset] * level[subset] - inverse_sum[subset]
                deficit = max(0.0, floor - rate[subset])
                value[mask[subset]] = weight * rate[subset] - price * spent - penalty * deficit
            else:
                used[subset], inverse_sum[subset] = used[parent], inverse_sum[parent]
                log_sum[subset], level[subset], rate[subset] = log_sum[parent], level[parent], rate[parent]
                value[mask[subset]] = value[mask[parent]]


@njit(cache=True)
def split(value, sizes, least, share):
    """The best way to give all pRBs away: `share[v]` becomes the set of CV v; returns the total value.

    value (V, 2^Z), sizes = popcount. Everybody gets at least `least` (0 or 1) pRBs: with 1, a set of the first v + 1
    CVs has v + 1 pRBs or more and leaves one for each of the others, which saves most of the work.
    """
    cvs, size = value.shape
    everything = size - 1
    prbs = sizes[everything]
    best = value[0].copy()
    chosen = np.zeros((cvs, size), np.int16)
    one = np.uint64(1)  # unsigned indices spare numba the test for negative ones
    for v in range(1, cvs):
        better, mine = np.full(size, -np.inf), value[v]
        for subset in range(everything if v == cvs - 1 else 0, size):
            if sizes[subset] < least * (v + 1) or sizes[subset] > prbs - least * (cvs - 1 - v):
                continue
            whole = np.uint64(subset)
            top, choice = (best[whole] + mine[0], np.uint64(0)) if least == 0 else (-np.inf, whole)
            part = whole
            while part:
                total = mine[part] + best[whole ^ part]
                if total > top:
                    top, choice = total, part
                part = (part - one) & whole
            better[whole], chosen[v, whole] = top, choice
        best = better
    rest = everything
    for v in range(cvs - 1, 0, -1):
        share[v] = chosen[v, rest]
        rest ^= share[v]
    share[0] = rest
    return best[everything]
