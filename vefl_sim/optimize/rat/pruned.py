"""The exact split of `exact.py` in a fraction of its time: prices rule out most sets of pRBs before they are evaluated.

As in dual.py, prices make pRB z worth h_vz to CV v, and no allocation that meets the floors is worth more than

    D − Σ_z loss_vz,   loss_vz = max_u h_uz − h_vz with v the owner of z.

So owners whose loss exceeds D minus the value of a known allocation are ruled out. Of the sets of pRBs that the first
CVs can share, only those remain whose losses leave room, and the dynamic programming of `split` runs over these few.
It evaluates them with the same operations in the same order and breaks ties alike, so it finds the same owners, bit for
bit. Where prices rule out too little, where no allocation that meets the floors is known, and where ties depend on more
than these sets, `prune` gives up.

pRBs that nobody wants at these prices are offered to all CVs at once. That changes nothing as long as no two of them
use the same one; those that nobody uses go to the last CV, as in `split`.
"""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.kernel import inner_float_kernel as kernel
from vefl_sim.core.kernel import least, total
from vefl_sim.optimize.rat.problem import MET
from vefl_sim.optimize.rat.water import behind, by_gain, demand_of, is_useful, only, water_level, with_worse

ROUNDS = 5  # of price adjustments
MOST_PAIRS = 8000  # of sets of successive CVs; with more, `split` is as fast
MARGIN = 1e-10  # relative; far above rounding, so that no allocation that is equally good is ruled out
NEAR = 1e-6  # a pRB this near the water level may be in use by rounding
NOBODY = -1


class Auction(NamedTuple):
    """The outcome of offering all pRBs at the prices of the least bound: what each owner would lose, and who wins."""

    loss: Floats  # shape (V, Z)
    winner: Ints  # NOBODY: no CV wants the pRB at its price; shape (Z,)


@kernel
def prune(problem, owner):
    """Fill the owners of the best split of the pRBs; returns False if it cannot be found here."""
    cvs, prbs = problem.gain.shape
    if not (problem.price > 0 and least(problem.floor) > 0 and least(problem.gain.flat) > 0):
        return False
    order = np.empty((cvs, prbs), np.int64)
    for v in range(cvs):
        for prb in range(prbs):
            order[v, prb] = prb
        by_gain(problem.gain[v], order[v])
    auction = Auction(np.empty((cvs, prbs)), np.empty(prbs, np.int64))
    room = bid(problem, order, auction)
    return room < np.inf and split_within(problem, order, auction, room, owner)


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
def bid(problem, order, auction):
    """Adjust prices, and fill the outcome at the best ones; returns D − the best value found, inf if none was.

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
                auction.winner[prb] = winner[prb]
                for v in range(cvs):
                    auction.loss[v, prb] = best[prb] - worth[v, prb]
        free = deal(worth, winner, held)
    return bound - most + MARGIN * (scale + abs(most))


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


@kernel
def split_within(problem, order, auction, room, owner):
    """Split the pRBs like `split`, among the sets whose losses leave room; False if they are too many, or none fits."""
    cvs, prbs = problem.gain.shape
    free, fixed, contested, count = 0, np.zeros(cvs, np.int64), np.empty(prbs, np.int64), 0
    for prb in range(prbs):
        if auction.winner[prb] == NOBODY:
            free |= 1 << prb
        elif total(auction.loss[:, prb] <= room) > 1:
            contested[count] = prb
            count += 1
        else:
            fixed[auction.winner[prb]] |= 1 << prb
    states, number = np.empty((cvs, 1 << count), np.int64), np.zeros(cvs, np.int64)
    if likely(auction.loss, contested[:count], room, states, number) > MOST_PAIRS:
        return False
    whole, members = (1 << count) - 1, np.zeros(1 << count, np.int64)
    for place in range(count):
        for part in range(1 << place):
            members[part | 1 << place] = members[part] | 1 << contested[place]
    own, used = np.full((cvs, whole + 1), np.nan), np.empty((cvs, whole + 1), np.int64)
    best, choice = np.full((cvs, whole + 1), -np.inf), np.zeros((cvs, whole + 1), np.int64)
    lent = np.zeros((cvs, whole + 1), np.int64)  # free pRBs that the CVs 0 … v use
    for v in range(cvs):
        for index in range(number[v]):
            state = states[v, index]
            for before in range(number[v - 1] if v else 1):
                rest = states[v - 1, before] if v else 0
                part = state ^ rest
                if rest & ~state:
                    continue
                if np.isnan(own[v, part]):
                    level, rate, value, used[v, part] = fill(problem, order, v, fixed[v] | free | members[part])
                    own[v, part] = value if max(0.0, problem.floor[v] - rate) <= MET * problem.floor[v] else -np.inf
                    for prb in range(prbs):
                        if free >> prb & 1 and abs(level * problem.gain[v, prb] - 1) < NEAR:
                            return False
                worth = own[v, part] + best[v - 1, rest] if v else own[v, part]
                lending = used[v, part] & free | (lent[v - 1, rest] if v else 0)
                if worth == best[v, state] and worth > -np.inf and lending | lent[v, state]:
                    return False  # `split` would look at the free pRBs, too
                if worth > best[v, state] or (worth == best[v, state] and part > choice[v, state]):
                    best[v, state], choice[v, state], lent[v, state] = worth, part, lending
    if best[cvs - 1, whole] == -np.inf:
        return False
    owner[:], taken, rest = cvs - 1, 0, whole
    for v in range(cvs - 1, -1, -1):
        part = choice[v, rest]
        mine = fixed[v] | members[part] | (used[v, part] & free)
        if mine & taken:
            return False  # two CVs use a pRB that was offered to all
        taken |= mine
        for prb in range(prbs):
            if mine >> prb & 1:
                owner[prb] = v
        rest ^= part
    return True


@kernel
def likely(loss, contested, room, states, number):
    """Fill the sets of contested pRBs that the CVs 0 … v may own together, for each v; returns the number of pairs."""
    cvs, count, pairs = len(loss), len(contested), 0
    lost = np.empty(1 << count)
    for v in range(cvs):
        lost[0] = 0.0
        for place in range(count):
            mine = least(loss[: v + 1, contested[place]])
            others = least(loss[v + 1 :, contested[place]]) if v < cvs - 1 else np.inf
            for part in range(1 << place):
                lost[part | 1 << place] = lost[part] + mine
                lost[part] += others
        for part in range(1 << count):
            if lost[part] <= room:
                states[v, number[v]] = part
                number[v] += 1
        pairs += number[v] * (number[v - 1] if v else 1)
    return pairs
