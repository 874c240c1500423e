"""Prices for pRBs: what each owner of a pRB would lose against the best one, and a bound on all allocations.

As in dual.py, prices make pRB z worth h_vz to CV v, and no allocation that meets the floors is worth more than

    D − Σ_z loss_vz,   loss_vz = max_u h_uz − h_vz with v the owner of z.
"""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.core.kernel import total
from vefl_sim.optimize.rat.problem import MET
from vefl_sim.optimize.rat.water import behind, demand_of, is_useful, only, water_level, with_worse

ROUNDS = 5  # of bids
MARGIN = 1e-10  # relative; far above rounding, so that no allocation that is equally good is ruled out
NOBODY = -1


class Auction(NamedTuple):
    """The outcome of offering all pRBs at the prices of the least bound: what each owner would lose, and who wins."""

    loss: Floats  # shape (V, Z)
    winner: Ints  # NOBODY: no CV wants the pRB at its price; shape (Z,)
    price: Floats  # what it is worth to its winner
    second: Floats  # the least loss if another CV than its winner owns it


@kernel
def bid(problem, order, auction):
    """Adjust prices, and fill the outcome at the best ones; returns (D, the best value found or −inf, rounding).

    A CV's price and weight follow from its water level on the pRBs that it won in the round before, first on its best.
    """
    cvs, prbs = problem.gain.shape
    level, weight, worth = np.ones(cvs), problem.weight.copy(), np.empty((cvs, prbs))
    best, winner, held, free = np.empty(prbs), np.empty(prbs, np.int64), np.zeros(cvs, np.int64), 0
    for v in range(cvs):
        for place in range(max(1, prbs // cvs)):
            held[v] |= 1 << order[v, place]
    bound, most, scale = np.inf, -np.inf, 0.0
    for step in range(ROUNDS + 1):
        value, used = 0.0 if step else -np.inf, 0  # the first pRBs overlap
        for v in range(cvs):
            found = fill(problem, order, v, held[v] | free)
            value = value + found[2] if found[1] >= problem.floor[v] * (1 - MET) and not used & found[3] else -np.inf
            used |= found[3]
            adjust(problem, v, found[0], found[1], 0.5 if step > 1 else 1.0, level, weight)
        most = max(most, value)
        if step == ROUNDS or bound - most <= MARGIN * scale:
            break
        dual, size = place_bids(problem, level, weight, worth, best, winner)
        if dual < bound:
            bound, scale = dual, size
            for prb in range(prbs):
                auction.winner[prb], auction.price[prb], auction.second[prb] = winner[prb], best[prb], np.inf
                for v in range(cvs):
                    auction.loss[v, prb] = best[prb] - worth[v, prb]
                    if v != winner[prb]:
                        auction.second[prb] = min(auction.second[prb], auction.loss[v, prb])
        free = deal(worth, winner, held)
    return bound, most, MARGIN * (scale + abs(most))


@kernel
def fill(problem, order, v, usable):
    """(L, rate, value, pRBs in use) of CV v on a set of pRBs: the operations of `subset_values`, in the same order."""
    cv, gain = demand_of(problem, v), problem.gain[v]
    use, x, rate, used = only(1.0, cv), 0.0, 0.0, 0
    for prb in order[v]:
        if not usable >> prb & 1:
            continue
        if not used:
            if not is_useful(gain[prb], cv):
                break
            use = only(gain[prb], cv)
        else:
            distance, log_ratio = behind(use.best, gain[prb])
            if not x > distance:
                break
            use = with_worse(use, distance, log_ratio)
        used |= 1 << prb
        x, rate = water_level(use, cv)
    if not used:
        return 0.0, 0.0, 0.0, 0
    return x + 1 / use.best, rate, cv.weight * rate - cv.price * (use.number * x - use.spread), used


@kernel
def adjust(problem, v, top, rate, share, level, weight):
    """Move level and weight of CV v towards those of a fill with level `top`; raise both if that misses its floor."""
    nominal, at_level = problem.weight[v], problem.price * top
    if rate < problem.floor[v] * (1 - MET):
        level[v], weight[v] = 1.3 * max(level[v], top), 1.3 * max(weight[v], at_level)
        return
    goal = at_level if rate >= problem.cap[v] or at_level > nominal else nominal
    level[v], weight[v] = level[v] + share * (top - level[v]), weight[v] + share * (goal - weight[v])


@kernel
def place_bids(problem, level, weight, worth, best, winner):
    """Fill the worths, the best ones and the winners; returns (D, the sum of the absolute values of its terms)."""
    bound, size = 0.0, 0.0
    best[:], winner[:] = 0.0, NOBODY
    for v in range(len(level)):
        w, extra = weight[v], problem.weight[v] - weight[v]
        top = min(level[v], w / problem.price)  # no price is below λ
        price = w / top
        for prb in range(len(best)):
            gain = problem.gain[v, prb]
            worth[v, prb] = w * np.log(gain * top) - price * (top - 1 / gain) if gain * top > 1 else 0.0
            if worth[v, prb] > best[prb]:
                best[prb], winner[prb] = worth[v, prb], v
        term = max(0.0, price - problem.price) * problem.power[v]
        term += extra * (problem.cap[v] if extra > 0 else problem.floor[v] * (1 - 2 * MET))
        bound, size = bound + term, size + abs(term) + w  # at a low SNR, worths are small differences of terms near w
    return bound + total(best), size + total(best)


@kernel
def deal(worth, winner, held):
    """Fill the pRBs that each CV holds: those it won, or else the one that another can best spare; returns the rest."""
    cvs, prbs = worth.shape
    held[:], free = 0, 0
    for prb in range(prbs):
        if winner[prb] == NOBODY:
            free |= 1 << prb
        else:
            held[winner[prb]] |= 1 << prb
    for v in range(cvs):
        loss, taken = np.inf, NOBODY
        for prb in range(prbs if not held[v] else 0):
            u = winner[prb]
            if u != NOBODY and held[u] & (held[u] - 1) and held[u] >> prb & 1 and worth[u, prb] - worth[v, prb] < loss:
                loss, taken = worth[u, prb] - worth[v, prb], prb
        if taken != NOBODY:
            held[winner[taken]] ^= 1 << taken
            held[v] = 1 << taken
    return free
