"""Local search for the RAT sub-problem: move a pRB to another CV, or swap two.

Each CV has a list of its pRBs, best gain first, so the effect of one pRB more or less is computed in one pass over that
list. Two outcomes are compared lexicographically: smaller total deficit first, then larger objective.
"""

import numpy as np

from vefl_sim.core.kernel import kernel

LOG_OF_NO_GAIN = -600.0  # ln g up to which a pRB counts as unusable
EPS = 1e-12  # relative: smaller improvements are rounding


@kernel
def outcome(inverse, log_gain, held, count, constants, drop, add):
    """(deficit, a·r − λP) of one CV with the pRBs `held[:count]`, without `drop` and with `add` (−1: none).

    The water-filling of `water_fill` (whose L is the least of three levels) on a sorted list, n pRBs in use: P_max
    binds L = (P_max + Σ 1/g)/n, cap and floor bind ln L = (r − Σ ln g)/n. A pRB is in use if L > 1/g; levels known as
    logarithms are compared as such, which leaves one log and one exp per call.
    constants = (a, λ, P_max, floor, cap, ln(a/λ)).
    """
    weight, price, power, floor, cap, log_price_level = (
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
            if log <= LOG_OF_NO_GAIN or (floor <= 0 and log_price_level + log <= 0):
                break
        elif (
            (power + inverse_sum) * part <= inverse[prb]
            or (cap - log_sum) * part + log <= 0
            or (log_price_level + log <= 0 and (floor - log_sum) * part + log <= 0)
        ):
            break
        used += 1
        part = 1 / used
        inverse_sum += inverse[prb]
        log_sum += log
    if used == 0:
        return floor, 0.0
    full = np.log((power + inverse_sum) * part)
    level = min(full, log_price_level)
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
def add_prb(v, prb, log_gain, held, count, owner):
    """Insert a pRB into the list of CV v, which becomes its owner."""
    at = count[v]
    while at > 0 and log_gain[v, held[v, at - 1]] < log_gain[v, prb]:
        held[v, at] = held[v, at - 1]
        at -= 1
    held[v, at] = prb
    count[v] += 1
    owner[prb] = v


@kernel
def remove_prb(v, prb, held, count):
    """Remove a pRB from the list of CV v."""
    at = 0
    while held[v, at] != prb:
        at += 1
    count[v] -= 1
    while at < count[v]:
        held[v, at] = held[v, at + 1]
        at += 1


@kernel
def fill_lists(owner, log_gain, held, count):
    """Fill the pRB lists of all CVs from `owner`."""
    count[:] = 0
    for prb in range(len(owner)):
        add_prb(owner[prb], prb, log_gain, held, count, owner)


@kernel
def evaluate_all(inverse, log_gain, held, count, constants, now):
    """Fill now (V, 2) = (deficit, value) of each CV; returns their sums."""
    for v in range(len(now)):
        now[v] = outcome(inverse[v], log_gain[v], held[v], count[v], constants[v], -1, -1)
    return now[:, 0].sum(), now[:, 1].sum()


@kernel
def greedy(inverse, log_gain, constants, scale, owner, held, count):
    """Give each pRB in turn to the CV that gains most from it: first deficit, then value. Returns their sums."""
    cvs, prbs = log_gain.shape
    count[:] = 0
    now = np.empty((cvs, 2))
    evaluate_all(inverse, log_gain, held, count, constants, now)
    for prb in range(prbs):
        best_cv, deficit, value = -1, 0.0, 0.0
        for v in range(cvs):
            after = outcome(inverse[v], log_gain[v], held[v], count[v], constants[v], -1, prb)
            deficit_change, value_change = after[0] - now[v, 0], after[1] - now[v, 1]
            if best_cv < 0 or better(deficit_change - deficit, value_change - value, scale):
                best_cv, deficit, value = v, deficit_change, value_change
        add_prb(best_cv, prb, log_gain, held, count, owner)
        now[best_cv, 0] += deficit
        now[best_cv, 1] += value
    return now[:, 0].sum(), now[:, 1].sum()


@kernel
def move_one(prb, allowed, inverse, log_gain, constants, scale, owner, held, count, now):
    """Move a pRB to the CV where it improves the total most, if any does; returns (moved, evaluations)."""
    u = owner[prb]
    deficit_without, value_without = outcome(inverse[u], log_gain[u], held[u], count[u], constants[u], prb, -1)
    best_cv, deficit, value, evaluations = -1, 0.0, 0.0, 1
    for v in range(len(count)):
        if v == u or not allowed[v]:
            continue
        after = outcome(inverse[v], log_gain[v], held[v], count[v], constants[v], -1, prb)
        evaluations += 1
        deficit_change = deficit_without - now[u, 0] + after[0] - now[v, 0]
        value_change = value_without - now[u, 1] + after[1] - now[v, 1]
        if better(deficit_change - deficit, value_change - value, scale):
            best_cv, deficit, value = v, deficit_change, value_change
    if best_cv >= 0:
        remove_prb(u, prb, held, count)
        add_prb(best_cv, prb, log_gain, held, count, owner)
        now[u, 0], now[u, 1] = deficit_without, value_without
        now[best_cv] = outcome(
            inverse[best_cv], log_gain[best_cv], held[best_cv], count[best_cv], constants[best_cv], -1, -1
        )
    return best_cv >= 0, evaluations


@kernel
def swap_two(one, two, inverse, log_gain, constants, scale, owner, held, count, now):
    """Swap two pRBs of different CVs if that improves the total; returns whether it did."""
    u, v = owner[one], owner[two]
    after_u = outcome(inverse[u], log_gain[u], held[u], count[u], constants[u], one, two)
    after_v = outcome(inverse[v], log_gain[v], held[v], count[v], constants[v], two, one)
    deficit_change = after_u[0] - now[u, 0] + after_v[0] - now[v, 0]
    if not better(deficit_change, after_u[1] - now[u, 1] + after_v[1] - now[v, 1], scale):
        return False
    remove_prb(u, one, held, count)
    remove_prb(v, two, held, count)
    add_prb(u, two, log_gain, held, count, owner)
    add_prb(v, one, log_gain, held, count, owner)
    now[u], now[v] = after_u, after_v
    return True


@kernel
def improve(inverse, log_gain, constants, scale, loss, bound, near, effort, owner, held, count):
    """Move and swap until nothing improves or `effort` evaluations are spent; returns (deficit, value, effort left).

    loss (V, Z) is what the Lagrangian loses if CV v owns pRB z: no allocation is worth more than bound − Σ loss of
    its owners, so an exchange that lowers this below the present value, or by more than `near`, is not tried. While
    a floor is unmet, only exchanges with a CV that misses its floor are tried.
    """
    cvs, prbs = log_gain.shape
    now, allowed = np.empty((cvs, 2)), np.empty(cvs, np.bool_)
    deficit, value = evaluate_all(inverse, log_gain, held, count, constants, now)
    total_loss = 0.0
    for prb in range(prbs):
        total_loss += loss[owner[prb], prb]
    unchanged, one = 0, 0
    while unchanged < prbs and effort > 0:
        floor_missed = deficit > EPS * scale[0]
        room = min(near, bound - total_loss - value + EPS * scale[1])
        present_loss = loss[owner[one], one]
        for v in range(cvs):
            allowed[v] = now[v, 0] > 0 if floor_missed else loss[v, one] - present_loss <= room
        changed, evaluations = move_one(one, allowed, inverse, log_gain, constants, scale, owner, held, count, now)
        effort -= evaluations
        two = 0
        while not changed and two < prbs:
            u, v = owner[one], owner[two]
            if u != v and (
                now[u, 0] + now[v, 0] > 0
                if floor_missed
                else loss[v, one] + loss[u, two] - present_loss - loss[v, two] <= room
            ):
                changed = swap_two(one, two, inverse, log_gain, constants, scale, owner, held, count, now)
                effort -= 2
            two += 1
        if changed:
            deficit, value, total_loss, unchanged = now[:, 0].sum(), now[:, 1].sum(), 0.0, 0
            for prb in range(prbs):
                total_loss += loss[owner[prb], prb]
        unchanged += 1
        one = (one + 1) % prbs
    return deficit, value, effort
