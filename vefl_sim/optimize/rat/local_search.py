"""Give pRBs away and trade them: the local search of the RAT sub-problem.

Each CV keeps its pRBs in a list, best gain first, so what it gains or loses with one pRB more or less costs one
pass over that list. Two outcomes are compared lexicographically: less total deficit, then a larger objective.
"""

import numpy as np

from vefl_sim.core.kernel import kernel

LOG_OF_NO_GAIN = -600.0  # ln g of a pRB that carries nothing
EPS = 1e-12  # relative: a smaller improvement is rounding


@kernel
def outcome(inverse, log_gain, held, count, constants, drop, add):
    """(deficit, a·r − λP) of one CV with the pRBs `held[:count]`, without `drop` and with `add` (−1: none).

    The water-filling of `fill` (whose L is the least of three levels) on a sorted list, n pRBs in use: P_max binds
    L = (P_max + Σ 1/g)/n, cap and floor bind ln L = (r − Σ ln g)/n. A pRB is in use if L > 1/g; comparing logarithms
    where the level is one leaves one log and one exp per call. terms = (a, λ, P_max, floor, cap, ln(a/λ)).
    """
    weight, price, power, floor, cap, dear = (
        constants[0],
        constants[1],
        constants[2],
        constants[3],
        constants[4],
        constants[5],
    )
    if power <= 0 or cap <= 0:
        return floor, 0.0
    used, inverse_sum, log_sum, at, part = 0, 0.0, 0.0, 0, 0.0
    while at < count or add >= 0:
        if add >= 0 and (at == count or log_gain[add] > log_gain[held[at]]):
            prb, add = add, -1
        else:
            prb = held[at]
            at += 1
            if prb == drop:
                continue
        log = log_gain[prb]
        if used == 0:
            if log <= LOG_OF_NO_GAIN or (floor <= 0 and dear + log <= 0):
                break
        elif (
            (power + inverse_sum) * part <= inverse[prb]
            or (cap - log_sum) * part + log <= 0
            or (dear + log <= 0 and (floor - log_sum) * part + log <= 0)
        ):
            break
        used += 1
        part = 1 / used
        inverse_sum += inverse[prb]
        log_sum += log
    if used == 0:
        return floor, 0.0
    full = np.log((power + inverse_sum) * part)
    level = min(full, dear)
    rate = used * level + log_sum
    if rate < floor and level < full:
        rate = min(floor, used * full + log_sum)
    rate = min(rate, cap)
    spent = min(power, used * np.exp((rate - log_sum) * part) - inverse_sum) if price > 0 else 0.0
    return max(0.0, floor - rate), weight * rate - price * spent


@kernel
def better(deficit, value, scale):
    """Whether a change of (deficit, value) is an improvement; scale = (typical floor, typical value)."""
    if abs(deficit) > EPS * scale[0]:
        return deficit < 0
    return value > EPS * scale[1]


@kernel
def give(v, prb, log_gain, held, count, owner):
    """Insert a pRB into the list of CV v."""
    at = count[v]
    while at > 0 and log_gain[v, held[v, at - 1]] < log_gain[v, prb]:
        held[v, at] = held[v, at - 1]
        at -= 1
    held[v, at] = prb
    count[v] += 1
    owner[prb] = v


@kernel
def take(v, prb, held, count):
    """Remove a pRB from the list of CV v."""
    at = 0
    while held[v, at] != prb:
        at += 1
    count[v] -= 1
    while at < count[v]:
        held[v, at] = held[v, at + 1]
        at += 1


@kernel
def hand_out(owner, log_gain, held, count):
    """Fill the lists from `owner`."""
    count[:] = 0
    for prb in range(len(owner)):
        give(owner[prb], prb, log_gain, held, count, owner)


@kernel
def state_of(inverse, log_gain, held, count, constants, now):
    """Fill now (V, 2) = (deficit, value) of each CV; returns their sums."""
    for v in range(len(now)):
        now[v] = outcome(inverse[v], log_gain[v], held[v], count[v], constants[v], -1, -1)
    return now[:, 0].sum(), now[:, 1].sum()


@kernel
def greedy(inverse, log_gain, constants, scale, owner, held, count):
    """Each pRB in turn to the CV that gains most by it: first deficit, then value. Returns their sums."""
    cvs, prbs = log_gain.shape
    count[:] = 0
    now = np.empty((cvs, 2))
    state_of(inverse, log_gain, held, count, constants, now)
    for prb in range(prbs):
        top, deficit, value = -1, 0.0, 0.0
        for v in range(cvs):
            after = outcome(inverse[v], log_gain[v], held[v], count[v], constants[v], -1, prb)
            less, more = after[0] - now[v, 0], after[1] - now[v, 1]
            if top < 0 or better(less - deficit, more - value, scale):
                top, deficit, value = v, less, more
        give(top, prb, log_gain, held, count, owner)
        now[top, 0] += deficit
        now[top, 1] += value
    return now[:, 0].sum(), now[:, 1].sum()


@kernel
def move_one(prb, allowed, inverse, log_gain, constants, scale, owner, held, count, now):
    """Move a pRB to the CV where it improves the whole most, if there is one; returns (moved, evaluations)."""
    u = owner[prb]
    less, left = outcome(inverse[u], log_gain[u], held[u], count[u], constants[u], prb, -1)
    top, deficit, value, tried = -1, 0.0, 0.0, 1
    for v in range(len(count)):
        if v == u or not allowed[v]:
            continue
        after = outcome(inverse[v], log_gain[v], held[v], count[v], constants[v], -1, prb)
        tried += 1
        by = less - now[u, 0] + after[0] - now[v, 0]
        gains = left - now[u, 1] + after[1] - now[v, 1]
        if better(by - deficit, gains - value, scale):
            top, deficit, value = v, by, gains
    if top >= 0:
        take(u, prb, held, count)
        give(top, prb, log_gain, held, count, owner)
        now[u, 0], now[u, 1] = less, left
        now[top] = outcome(inverse[top], log_gain[top], held[top], count[top], constants[top], -1, -1)
    return top >= 0, tried


@kernel
def swap_two(one, two, inverse, log_gain, constants, scale, owner, held, count, now):
    """Exchange two pRBs of different CVs if that improves the whole; returns whether it did."""
    u, v = owner[one], owner[two]
    mine = outcome(inverse[u], log_gain[u], held[u], count[u], constants[u], one, two)
    theirs = outcome(inverse[v], log_gain[v], held[v], count[v], constants[v], two, one)
    by = mine[0] - now[u, 0] + theirs[0] - now[v, 0]
    if not better(by, mine[1] - now[u, 1] + theirs[1] - now[v, 1], scale):
        return False
    take(u, one, held, count)
    take(v, two, held, count)
    give(u, two, log_gain, held, count, owner)
    give(v, one, log_gain, held, count, owner)
    now[u], now[v] = mine, theirs
    return True


@kernel
def improve(inverse, log_gain, constants, scale, loss, bound, near, effort, owner, held, count):
    """Moves and swaps until none improves or `effort` evaluations are spent; returns (deficit, value, effort left).

    loss (V, Z) is what the Lagrangian loses if CV v owns pRB z: no allocation is worth more than bound − Σ loss of
    its owners, so an exchange that takes this below the present value, or lowers it by more than `near`, is not
    tried. While a floor is unmet, only exchanges with a CV that misses its own are.
    """
    cvs, prbs = log_gain.shape
    now, allowed = np.empty((cvs, 2)), np.empty(cvs, np.bool_)
    deficit, value = state_of(inverse, log_gain, held, count, constants, now)
    lost = 0.0
    for prb in range(prbs):
        lost += loss[owner[prb], prb]
    quiet, one = 0, 0
    while quiet < prbs and effort > 0:
        short = deficit > EPS * scale[0]
        room = min(near, bound - lost - value + EPS * scale[1])
        start = loss[owner[one], one]
        for v in range(cvs):
            allowed[v] = now[v, 0] > 0 if short else loss[v, one] - start <= room
        changed, tried = move_one(one, allowed, inverse, log_gain, constants, scale, owner, held, count, now)
        effort -= tried
        two = 0
        while not changed and two < prbs:
            u, v = owner[one], owner[two]
            if u != v and (
                now[u, 0] + now[v, 0] > 0 if short else loss[v, one] + loss[u, two] - start - loss[v, two] <= room
            ):
                changed = swap_two(one, two, inverse, log_gain, constants, scale, owner, held, count, now)
                effort -= 2
            two += 1
        if changed:
            deficit, value, lost, quiet = now[:, 0].sum(), now[:, 1].sum(), 0.0, 0
            for prb in range(prbs):
                lost += loss[owner[prb], prb]
        quiet += 1
        one = (one + 1) % prbs
    return deficit, value, effort
