"""The sets of pRBs that a CV may own in the best split: those that the prices of an auction do not rule out."""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.optimize.rat.exact.auction import NOBODY
from vefl_sim.optimize.rat.problem import MET
from vefl_sim.optimize.rat.water import PrbsInUse, behind, demand_of, is_useful, only, water_level, with_worse

NEAR = 1e-6  # a pRB this near the water level may be in use by rounding


class Sets(NamedTuple):
    """The sets of pRBs that each CV may own; rows are CVs."""

    owned: Ints  # bit z: pRB z
    used: Ints  # those and the used ones of the pRBs that are offered to all
    value: Floats  # f_v(S)
    number: Ints  # of sets in the row; shape (V,)


class Growth(NamedTuple):
    """What is known of the sets of one CV while they grow."""

    owned: Ints
    used: Ints
    lost: Floats  # at least
    number: Floats  # of the pRBs in use: n, Σ d and Σ ln(g_b/g) of `PrbsInUse`
    spread: Floats
    log_spread: Floats
    level: Floats  # x
    rate: Floats


@kernel
def new_sets(cvs, prbs):
    """Empty arrays for all sets of the CVs, and for the growth of those of one."""
    shape, ints, floats = (cvs, 1 << prbs), np.empty((2, 1 << prbs), np.int64), np.empty((6, 1 << prbs))
    sets = Sets(np.empty(shape, np.int64), np.empty(shape, np.int64), np.empty(shape), np.zeros(cvs, np.int64))
    return sets, Growth(ints[0], ints[1], floats[0], floats[1], floats[2], floats[3], floats[4], floats[5])


@kernel
def grow(problem, order, auction, room, v, growth, sets):
    """Fill the sets that CV v may own: they meet its floor, and what must be lost with them leaves room.

    As in `subset_values`, sets grow from their best pRB by worse ones; only sets that use all their pRBs are kept.
    Returns their number, 0 if a pRB that is offered to all is so near the water level that rounding matters; with the
    last CV any pRB counts, because it gets all that nobody uses.
    """
    cvs, prbs = problem.gain.shape
    cv, gain, number, without = demand_of(problem, v), problem.gain[v], 0, 0.0
    for first in range(prbs):
        prb = order[first]
        alone, winner, lost = only(gain[prb], cv), auction.winner[prb], without + auction.loss[v, prb]
        if not is_useful(gain[prb], cv) or without > room:
            break
        without += auction.second[prb] if winner == v else 0.0
        if lost > room:
            continue
        end, owned = 0, 0 if winner == NOBODY else 1 << prb
        put(growth, end, alone, cv, owned, 1 << prb, lost)
        end += 1
        for place in range(first + 1, prbs):
            prb = order[place]
            distance, log_ratio = behind(alone.best, gain[prb])
            for parent in range(end):
                owned, used, lost = growth.owned[parent], growth.used[parent] | 1 << prb, growth.lost[parent]
                growth.lost[parent] += auction.second[prb] if auction.winner[prb] == v else 0.0
                if not growth.level[parent] > distance or lost + auction.loss[v, prb] > room:
                    continue
                more = with_worse(in_use(growth, parent, alone), distance, log_ratio)
                if auction.winner[prb] == NOBODY:
                    put(growth, parent, more, cv, owned, used, lost)
                elif size(owned) <= prbs - cvs:  # each of the other CVs needs a pRB
                    put(growth, end, more, cv, owned | 1 << prb, used, lost + auction.loss[v, prb])
                    end += 1
        for index in range(end):
            if growth.lost[index] > room or max(0.0, cv.floor - growth.rate[index]) > MET * cv.floor:
                continue
            use, x = in_use(growth, index, alone), growth.level[index]
            for prb in range(prbs):
                offered = auction.winner[prb] == NOBODY or (v == cvs - 1 and not growth.used[index] >> prb & 1)
                if offered and abs((x + 1 / use.best) * gain[prb] - 1) < NEAR:
                    return 0
            sets.owned[v, number], sets.used[v, number] = growth.owned[index], growth.used[index]
            sets.value[v, number] = cv.weight * growth.rate[index] - cv.price * (use.number * x - use.spread)
            number += 1
        if winner == NOBODY:
            break  # every set has this pRB
    return number


@kernel
def put(growth, at, use, cv, owned, used, lost):
    """Fill place `at` of a growth."""
    growth.owned[at], growth.used[at], growth.lost[at] = owned, used, lost
    growth.number[at], growth.spread[at], growth.log_spread[at] = use.number, use.spread, use.log_spread
    growth.level[at], growth.rate[at] = water_level(use, cv)


@kernel
def in_use(growth, at, alone):
    """The pRBs in use of a set, of which the best was used `alone` at first."""
    return PrbsInUse(growth.number[at], alone.best, alone.ceiling, growth.spread[at], growth.log_spread[at])


@kernel
def size(owned):
    """The number of pRBs in a set."""
    number = 0
    while owned:
        owned &= owned - 1
        number += 1
    return number
