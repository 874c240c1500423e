"""The best split of the pRBs, as `subsets.py` finds it, in a fraction of the time: most sets are never looked at.

Sets of pRBs whose losses exceed the room, the bound D of the auction minus the value of a known allocation, are ruled
out. Of the sets that remain, the values f_v(S) are computed, and with prices π of the pRBs they give a smaller bound,

    D′ = Σ_z π_z + Σ_v max_S (f_v(S) − π(S)),

which rules out almost all of these, too. A search through the rest ends at the best split. Values are computed with
the operations of `split`, in the same order, so the owners are the same, bit for bit. Where prices rule out too little,
where no allocation that meets the floors is known, and where two splits are worth the same, `prune` gives up.

pRBs that nobody wants at the prices of the auction are offered to all CVs at once. That changes nothing as long as no
two of them use the same one; those that nobody uses go to the last CV, as in `split`.
"""

import numpy as np

from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.core.kernel import least, total
from vefl_sim.optimize.rat.exact.auction import NOBODY, Auction, bid
from vefl_sim.optimize.rat.exact.sets import grow, new_sets
from vefl_sim.optimize.rat.water import by_gain

STEPS = 40  # in which the prices of pRBs are improved
FEW = 100  # combinations of sets, which are searched faster than prices are improved
MOST_TRIED = 4000  # sets in the search; with more, `split` is as fast


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
    auction = Auction(np.empty((cvs, prbs)), np.empty(prbs, np.int64), np.empty(prbs), np.full(prbs, np.inf))
    bound, most, margin = bid(problem, order, auction)
    if most == -np.inf:
        return False
    sets, growth = new_sets(cvs, prbs)
    for v in range(cvs):
        sets.number[v] = grow(problem, order[v], auction, bound - most + margin, v, growth, sets)
        if not sets.number[v]:
            return False
    if combinations(sets) > FEW:
        most = narrow(auction.price, most, margin, sets)
    return search(most - margin, sets, owner)


@kernel
def narrow(price, most, margin, sets):
    """Improve the prices until few combinations of sets remain; returns the value of the best allocation known.

    Polyak's step: the price of a pRB rises with the number of CVs whose best set has it, and falls if there is none.
    """
    cvs, prbs = len(sets.number), len(price)
    paid, net, top, demand = np.zeros(1 << prbs), np.empty(sets.value.shape), np.empty(cvs), np.empty(prbs)
    for step in range(STEPS):
        for prb in range(prbs):
            for part in range(1 << prb):
                paid[part | 1 << prb] = paid[part] + price[prb]
        demand[:], top[:], dual = -1.0, -np.inf, total(price)
        for v in range(cvs):
            wanted = 0
            for index in range(sets.number[v]):
                net[v, index] = sets.value[v, index] - paid[sets.owned[v, index]]
                if net[v, index] > top[v]:
                    top[v], wanted = net[v, index], sets.owned[v, index]
            dual += top[v]
            for prb in range(prbs):
                demand[prb] += wanted >> prb & 1
        most = max(most, serve(step, net, sets))
        for v in range(cvs):
            number = 0
            for index in range(sets.number[v]):
                if top[v] - net[v, index] <= dual - most + margin:
                    sets.owned[v, number], sets.used[v, number] = sets.owned[v, index], sets.used[v, index]
                    sets.value[v, number] = sets.value[v, index]
                    number += 1
            sets.number[v] = number
        if combinations(sets) <= FEW:
            break
        square = 0.0
        for prb in range(prbs):
            demand[prb] = max(demand[prb], 0.0) if price[prb] == 0 else demand[prb]
            square += demand[prb] ** 2
        for prb in range(prbs):
            price[prb] = max(0.0, price[prb] + (dual - most) / max(square, 1.0) * demand[prb])
    return most


@kernel
def combinations(sets):
    """The number of ways to choose a set for each CV."""
    ways = 1.0
    for number in sets.number:
        ways *= number
    return ways


@kernel
def serve(first, net, sets):
    """The value of the allocation in which the CVs, from `first` on, take their best sets of what is left; or −inf."""
    cvs, taken, value = len(sets.number), 0, 0.0
    for turn in range(cvs):
        v = (first + turn) % cvs
        best, choice = -np.inf, NOBODY
        for index in range(sets.number[v]):
            if not sets.owned[v, index] & taken and net[v, index] > best:
                best, choice = net[v, index], index
        if choice == NOBODY:
            return -np.inf
        taken |= sets.owned[v, choice]
        value += sets.value[v, choice]
    return value


@kernel
def search(enough, sets, owner):
    """Fill the owners of the best choice of disjoint sets; False if there is none, or two, or too many were tried."""
    cvs, prbs = len(sets.number), len(owner)
    at, taken, worth = np.zeros(cvs, np.int64), np.zeros(cvs + 1, np.int64), np.zeros(cvs + 1)
    hope, choice = np.zeros(cvs + 1), np.empty(cvs, np.int64)  # hope[v]: the most that the CVs from v on can add
    for v in range(cvs - 1, -1, -1):
        most = -np.inf
        for index in range(sets.number[v]):
            most = max(most, sets.value[v, index])
        hope[v] = hope[v + 1] + most
    best, tied, tried, v = -np.inf, False, 0, 0
    while v >= 0:
        if v == cvs:
            tied = worth[v] == best or (tied and worth[v] < best)
            if worth[v] > best:
                best = worth[v]
                for u in range(cvs):
                    choice[u] = sets.used[u, at[u] - 1]
            v -= 1
            continue
        index = at[v]
        if index == sets.number[v] or tried > MOST_TRIED:
            at[v] = 0
            v -= 1
            continue
        at[v] += 1
        tried += 1
        value = sets.value[v, index] + worth[v] if v else sets.value[v, index]  # in the order of `split`
        if not sets.owned[v, index] & taken[v] and value + hope[v + 1] >= enough:
            taken[v + 1], worth[v + 1] = taken[v] | sets.owned[v, index], value
            v += 1
    if best == -np.inf or tied or tried > MOST_TRIED:
        return False
    owner[:], mine = cvs - 1, 0
    for v in range(cvs):
        if choice[v] & mine:
            return False  # two CVs use a pRB that was offered to all
        mine |= choice[v]
        for prb in range(prbs):
            if choice[v] >> prb & 1:
                owner[prb] = v
    return True
