"""Prices for the RAT sub-problem: the Lagrangian dual, an upper bound for any number of pRBs.

Price the power of each CV (p = λ + μ) and weigh its rate (w = a + ν − ξ: dearer below the floor, cheaper at the cap).
Then every pRB is a problem of its own, won by the CV that gets most out of it, and with L = w/p

    D = Σ_z max_v h_vz + Σ_v (p_v − λ)·P_v + (a_v − w_v)·(cap_v if w_v < a_v else floor_v),
    h = w·(ln gL − 1 + 1/(gL)) where gL > 1, else 0,

bounds every allocation that meets the floors, whatever the prices.
"""

import numpy as np

from vefl_sim.core.kernel import kernel

STEPS, FEWER_STEPS, MANY = 80, 50, 10_000  # fewer where V·Z is more than MANY
PATIENCE, PROGRESS = 25, 1e-4  # this many steps without a bound better by this part: the prices are good enough
FIRST_SOFTNESS, SOFTNESS = 0.5, 0.1  # of the mean worth of a pRB: CVs that come this close share it
NO_GAIN = -1e9  # stands for ln 0 where −∞ would not survive fast arithmetic
ASTRAY = 0.02  # a bound worse than the best one by this much: back to that, with smaller steps
FIRST_STEP, MAX_STEP = 0.1, 0.6  # of ln w and ln L


@kernel
def worths(log_gain, inverse_gain, weight, level, worth, best):
    """Fill h (V, Z) and its maximum over the CVs, best (Z,); returns Σ_z best."""
    cvs, prbs = worth.shape
    best[:] = 0.0
    for v in range(cvs):
        w, price, shift = weight[v], weight[v] / level[v], np.log(level[v])
        logs, inverses, row = log_gain[v], inverse_gain[v], worth[v]
        for z in range(prbs):
            log_snr = logs[z] + shift
            h = w * (log_snr - 1) + price * inverses[z]
            row[z] = h if log_snr > 0 else 0.0
            best[z] = max(best[z], row[z])
    return best.sum()


@kernel
def demands(worth, best, softness, log_gain, inverse_gain, level, near, share, rate, spent):
    """Fill rate and power (V,) if the CVs near the best one share each pRB: smooth prices need a smooth demand.

    A share is ∝ (h − best + softness)²₊, so few CVs count per pRB; they are listed first.
    """
    cvs, prbs = worth.shape
    total, least = np.zeros(prbs), np.maximum(best - softness, 0.0)
    found = 0
    for v in range(cvs):
        row = worth[v]
        for z in range(prbs):
            if row[z] > least[z]:
                near[found] = v * prbs + z
                share[found] = (row[z] - least[z]) ** 2
                total[z] += share[found]
                found += 1
    shift = np.log(level)
    rate[:], spent[:] = 0.0, 0.0
    for index in range(found):
        v, z = near[index] // prbs, near[index] % prbs
        part = share[index] / total[z]
        rate[v] += part * (log_gain[v, z] + shift[v])
        spent[v] += part * (level[v] - inverse_gain[v, z])


@kernel
def slope_of_weight(above_floor, above_cap, weight, nominal):
    """∂D/∂w: the rate against the floor if w > a, against the cap if w < a; zero at w = a if it lies between."""
    if weight > nominal or (weight == nominal and above_floor < 0):
        return above_floor
    if weight < nominal or above_cap > 0:
        return above_cap
    return 0.0


@kernel
def stride(slope, before, step):
    """The next step length (Rprop): longer while the slope keeps its sign, half when it turns."""
    if slope * before < 0:
        return 0.5 * step
    return min(MAX_STEP, 1.3 * step) if slope * before > 0 else step


@kernel
def move(v, rate, slack, weight, price, floor, cap, w, level, slopes, steps):
    """One step of w and L of CV v down their slopes; p = w/L never falls below λ."""
    pinned = price > 0 and slack >= 0 and level[v] >= w[v] / price * (1 - 1e-12)
    extra = 0.0 if pinned else slack / level[v]
    slope_w = slope_of_weight(rate - floor[v] + extra, rate - cap[v] + extra, w[v], weight[v])
    slope_l = -slack
    steps[0, v], steps[1, v] = stride(slope_w, slopes[0, v], steps[0, v]), stride(slope_l, slopes[1, v], steps[1, v])
    slopes[0, v], slopes[1, v] = slope_w, slope_l
    following = w[v] * np.exp(-np.sign(slope_w) * steps[0, v])
    if (following - weight[v]) * (w[v] - weight[v]) < 0:
        following = weight[v]
    w[v] = min(max(following, 1e-6 * weight[v]), 1e6 * weight[v])
    level[v] *= np.exp(-np.sign(slope_l) * steps[1, v])
    if price > 0:
        level[v] = min(level[v], w[v] / price)


@kernel
def first_prices(gain, weight, price, power, cap, log_gain, inverse_gain, level, ceiling):
    """Fill ln g, 1/g, first levels (P_max spread over Z/V middling pRBs) and caps.

    No CV carries more than all pRBs at full power each, so a cap above that is lowered to it: a tighter bound.
    """
    cvs, prbs = gain.shape
    for v in range(cvs):
        level[v] = power[v] * cvs / prbs + 1e-30
        for z in range(prbs):
            carries = gain[v, z] > 0
            log_gain[v, z] = np.log(gain[v, z]) if carries else NO_GAIN
            inverse_gain[v, z] = 1 / gain[v, z] if carries else 0.0
            level[v] += inverse_gain[v, z] / prbs
        ceiling[v] = min(cap[v], np.log1p(gain[v] * power[v]).sum())
        if price > 0:
            level[v] = min(level[v], weight[v] / price)


@kernel
def constraints_worth(weight, price, power, floor, cap, w, level):
    """The part of D that does not depend on the pRBs: what relaxing P_max, floors and caps is charged."""
    total = 0.0
    for v in range(len(w)):
        total += (w[v] / level[v] - price) * power[v] + (weight[v] - w[v]) * (cap[v] if w[v] < weight[v] else floor[v])
    return total


@kernel
def prices(gain, weight, price, power, floor, cap, best_weight, best_level):
    """Fill w and L (V,) of the least D found; returns D.

    Each step lets ln w and ln L of every CV follow the sign of its own slope, so no unit or scale matters; CVs that
    outbid each other in turn would send all prices up, hence the way back to the best ones.
    """
    cvs, prbs = gain.shape
    weight = np.maximum(weight, 1e-12 * weight.max() + 1e-200)  # a larger a only loosens the bound
    log_gain, inverse_gain, worth = np.empty(gain.shape), np.empty(gain.shape), np.empty(gain.shape)
    w, level, ceiling, rate, spent = weight.copy(), np.empty(cvs), np.empty(cvs), np.empty(cvs), np.empty(cvs)
    best, near, share = np.empty(prbs), np.empty(cvs * prbs, np.int64), np.empty(cvs * prbs)
    slopes, steps = np.zeros((2, cvs)), np.full((2, cvs), FIRST_STEP)
    first_prices(gain, weight, price, power, cap, log_gain, inverse_gain, level, ceiling)
    limit = STEPS if cvs * prbs <= MANY else FEWER_STEPS
    bound, waited, reach = np.inf, 0, FIRST_STEP
    for step in range(limit):
        pool = worths(log_gain, inverse_gain, w, level, worth, best)
        total = pool + constraints_worth(weight, price, power, floor, ceiling, w, level)
        waited = 0 if total < bound - PROGRESS * abs(total) else waited + 1
        if total < bound:
            bound = total
            best_weight[:], best_level[:] = w, level
        elif total > bound + ASTRAY * abs(bound):
            w[:], level[:] = best_weight, best_level
            reach *= 0.5
            steps[:], slopes[:] = reach, 0.0
            pool = worths(log_gain, inverse_gain, w, level, worth, best)
        if waited > PATIENCE:
            break
        softness = FIRST_SOFTNESS * (SOFTNESS / FIRST_SOFTNESS) ** min(1.0, 3 * step / limit) * pool / prbs + 1e-300
        demands(worth, best, softness, log_gain, inverse_gain, level, near, share, rate, spent)
        for v in range(cvs):
            move(v, rate[v], power[v] - spent[v], weight, price, floor, ceiling, w, level, slopes, steps)
    return bound
