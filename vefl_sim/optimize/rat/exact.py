"""The RAT sub-problem solved exactly for up to 12 pRBs, in two ways with the same result.

**All subsets** (`subset_values`, `split`): a value for every subset, then dynamic programming over CVs. Sort a CV's
pRBs by gain: the parent of a subset is the subset without its worst pRB. If the parent's water level lies above 1/g of
that pRB, all pRBs of the subset are in use and its level has a closed form; else it is worth as much as the parent. So
every subset costs O(1), and dynamic programming splits the pRBs among the CVs in O(V·3^Z).

**Most sets ruled out** (`prune`), in a fraction of the time. An auction sets prices for pRBs: as in dual.py, they make
pRB z worth h_vz to CV v, and no allocation that meets the floors is worth more than

    D − Σ_z loss_vz,   loss_vz = max_u h_uz − h_vz with v the owner of z.

Sets of pRBs whose losses exceed the room, the bound D of the auction minus the value of a known allocation, are ruled
out. Of the sets that remain, the values f_v(S) are computed, and with prices π of the pRBs they give a smaller bound,

    D′ = Σ_z π_z + Σ_v max_S (f_v(S) − π(S)),

which rules out almost all of these, too. A search through the rest ends at the best split. Values are computed with
the operations of `split`, in the same order, so the owners are the same, bit for bit. Where prices rule out too little,
where no allocation that meets the floors is known, and where two splits are worth the same, `prune` gives up.

pRBs that nobody wants at the prices of the auction are offered to all CVs at once. That changes nothing as long as no
two of them use the same one; those that nobody uses go to the last CV, as in `split`.

**One pRB for each CV** (`assign`): the linear assignment problem, by shortest augmenting paths (Jonker and Volgenant).
"""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.kernel import float_kernel as kernel
from vefl_sim.core.kernel import least, total
from vefl_sim.optimize.rat.problem import EXACT_PRBS, MET
from vefl_sim.optimize.rat.water import PrbsInUse, behind, by_gain, demand_of, is_useful, only, water_level, with_worse

SUBSET_SIZES = np.array([subset.bit_count() for subset in range(1 << EXACT_PRBS)])  # pRBs in each subset


@kernel
def assign(value, column_of):
    """Assign each row its own column so that the total value is largest; returns that total.

    There must not be more rows than columns. Dual prices keep value ≤ row price + column price, with equality on the
    pairs matched so far; each new row is matched along the path of least total slack. O(rows²·columns); SciPy's solver
    is as fast but cannot be called from a kernel. A path visits each column once, so n + 1 steps suffice for n columns;
    more would only be needed if a value is not finite, and then the assignment is arbitrary.
    """
    rows, n = value.shape
    for row in range(rows):
        column_of[row] = row
    row_price, column_price = np.zeros(rows), np.zeros(n + 1)
    row_of = np.full(n + 1, -1)  # row assigned to each column; column n stands for the row being assigned
    for row in range(rows):
        row_of[n] = row
        slack, previous, visited = np.full(n, np.inf), np.full(n, n), np.zeros(n + 1, np.bool_)
        current = n
        for _ in range(n + 1):
            visited[current] = True
            current_row, delta, next_column = row_of[current], np.inf, n
            for column in range(n):
                if visited[column]:
                    continue
                gap = -value[current_row, column] - row_price[current_row] - column_price[column]
                if gap < slack[column]:
                    slack[column], previous[column] = gap, current
                if slack[column] < delta:
                    delta, next_column = slack[column], column
            for column in range(n + 1):
                if visited[column]:
                    row_price[row_of[column]] += delta
                    column_price[column] -= delta
                elif column < n:
                    slack[column] -= delta
            current = next_column
            if row_of[current] < 0:
                break
        for _ in range(n + 1):
            if current == n:
                break
            row_of[current] = row_of[previous[current]]
            current = previous[current]
    total = 0.0
    for column in range(n):
        if row_of[column] >= 0:
            column_of[row_of[column]] = column
            total += value[row_of[column], column]
    return total


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

    value (V, 2^Z), sizes = popcount. Every CV gets at least `least` (0 or 1) pRBs: with 1, a set of the first
    v + 1 CVs has v + 1 pRBs or more and leaves one for each of the others, which saves much of the work.
    """
    cvs, size = value.shape
    if cvs == 1:
        share[0] = size - 1
        return value[0, size - 1]
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
                elif SUBSET_SIZES[owned] <= prbs - cvs:  # each of the other CVs needs a pRB
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
