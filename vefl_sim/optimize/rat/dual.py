"""Prices for the RAT sub-problem: the Lagrangian dual, an upper bound for any number of pRBs.

Price the power of each CV (p = λ + μ) and weight its rate (w = a + ν − ξ: higher below the floor, lower at the cap).
Then every pRB is a separate problem, won by the CV with the largest worth h, and with L = w/p

    D = Σ_z max_v h_vz + Σ_v (p_v − λ)·P_v + (a_v − w_v)·(cap_v if w_v < a_v else floor_v),
    h = w·(ln gL − 1 + 1/(gL)) where gL > 1, else 0,

bounds every allocation that meets the floors, whatever the prices.
"""

import numpy as np

from vefl_sim.core.kernel import kernel

STEPS, FEWER_STEPS, LARGE_SIZE = 80, 50, 10_000  # at most; fewer where V·Z exceeds LARGE_SIZE
PATIENCE, PROGRESS = 25, 1e-4  # stop after PATIENCE steps without a relative improvement of PROGRESS
FIRST_SOFTNESS, SOFTNESS = 0.5, 0.1  # of the mean worth of a pRB: CVs this close to the best share the pRB
NO_GAIN = -1e9  # finite substitute for ln 0, because −∞ is not safe in fast arithmetic
DIVERGED = 0.02  # if the bound is worse than the best one by this share, return to that one, with smaller steps
FIRST_STEP, MAX_STEP = 0.1, 0.6  # step lengths in ln w and ln L


@kernel
def fill_worths(log_gain, inverse_gain, weight, level, worth, best):
    """Fill worth h (V, Z) and its maximum over the CVs, best (Z,); returns Σ_z best."""
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

    A share is ∝ (h − best + softness)²₊, so few CVs share a pRB; those (CV, pRB) pairs are listed in `near` first.
    """
    cvs, prbs = worth.shape
    total, least = np.zeros(prbs), np.maximum(best - softness, 0.0)
    pairs = 0
    for v in range(cvs):
        row = worth[v]
        for z in range(prbs):
            if row[z] > least[z]:
                near[pairs] = v * prbs + z
                share[pairs] = (row[z] - least[z]) ** 2
                total[z] += share[pairs]
                pairs += 1
    shift = np.log(level)
    rate[:], spent[:] = 0.0, 0.0
    for index in range(pairs):
        v, z = near[index] // prbs, near[index] % prbs
        part = share[index] / total[z]
        rate[v] += part * (log_gain[v, z] + shift[v])
        spent[v] += part * (level[v] - inverse_gain[v, z])


@kernel
def slope_of_weight(above_floor, above_cap, weight, nominal):
    """∂D/∂w: rate − floor if w > a, rate − cap if w < a; zero at w = a if the rate lies between floor and cap."""
    if weight > nominal or (weight == nominal and above_floor < 0):
        return above_floor
    if weight < nominal or above_cap > 0:
        return above_cap
    return 0.0


@kernel
def next_step(slope, previous, step):
    """The next step length (Rprop): longer while the slope keeps its sign, half when the sign changes."""
    if slope * previous < 0:
        return 0.5 * step
    return min(MAX_STEP, 1.3 * step) if slope * previous > 0 else step


@kernel
def move(v, rate, slack, weight, price, floor, cap, w, level, slopes, steps):
    """Move w and L of CV v one step down their slopes; p = w/L never falls below λ."""
    pinned = price > 0 and slack >= 0 and level[v] >= w[v] / price * (1 - 1e-12)
    extra = 0.0 if pinned else slack / level[v]
    slope_w = slope_of_weight(rate - floor[v] + extra, rate - cap[v] + extra, w[v], weight[v])
    slope_l = -slack
    steps[0, v], steps[1, v] = (
        next_step(slope_w, slopes[0, v], steps[0, v]),
        next_step(slope_l, slopes[1, v], steps[1, v]),
    )
    slopes[0, v], slopes[1, v] = slope_w, slope_l
    next_w = w[v] * np.exp(-np.sign(slope_w) * steps[0, v])
    if (next_w - weight[v]) * (w[v] - weight[v]) < 0:
        next_w = weight[v]
    w[v] = min(max(next_w, 1e-6 * weight[v]), 1e6 * weight[v])
    level[v] *= np.exp(-np.sign(slope_l) * steps[1, v])
    if price > 0:
        level[v] = min(level[v], w[v] / price)


@kernel
def first_prices(gain, weight, price, power, cap, log_gain, inverse_gain, level, ceiling):
    """Fill ln g, 1/g, the first levels (P_max spread over Z/V average pRBs) and the caps.

    No CV can send more than with full power on every pRB; a cap above that is lowered to it, for a tighter bound.
    """
    cvs, prbs = gain.shape
    for v in range(cvs):
        level[v] = power[v] * cvs / prbs + 1e-30
        for z in range(prbs):
            usable = gain[v, z] > 0
            log_gain[v, z] = np.log(gain[v, z]) if usable else NO_GAIN
            inverse_gain[v, z] = 1 / gain[v, z] if usable else 0.0
            level[v] += inverse_gain[v, z] / prbs
        ceiling[v] = min(cap[v], np.log1p(gain[v] * power[v]).sum())
        if price > 0:
            level[v] = min(level[v], weight[v] / price)


@kernel
def constraint_terms(weight, price, power, floor, cap, w, level):
    """The part of D that does not depend on the pRBs: the terms of the relaxed constraints P_max, floors and caps."""
    total = 0.0
    for v in range(len(w)):
        total += (w[v] / level[v] - price) * power[v] + (weight[v] - w[v]) * (cap[v] if w[v] < weight[v] else floor[v])
    return total


@kernel
def prices(gain, weight, price, power, floor, cap, best_weight, best_level):
    """Minimise D: fill w and L (V,) of the least D found; returns D.

    Each step moves ln w and ln L of every CV by the sign of their own slopes, so units and scales do not matter. CVs
    that outbid each other in turn would drive all prices up, hence the return to the best prices.
    """
    cvs, prbs = gain.shape
    weight = np.maximum(weight, 1e-12 * weight.max() + 1e-200)  # a larger weight a only loosens the bound
    log_gain, inverse_gain, worth = np.empty(gain.shape), np.empty(gain.shape), np.empty(gain.shape)
    w, level, ceiling, rate, spent = weight.copy(), np.empty(cvs), np.empty(cvs), np.empty(cvs), np.empty(cvs)
    best, near, share = np.empty(prbs), np.empty(cvs * prbs, np.int64), np.empty(cvs * prbs)
    slopes, steps = np.zeros((2, cvs)), np.full((2, cvs), FIRST_STEP)
    first_prices(gain, weight, price, power, cap, log_gain, inverse_gain, level, ceiling)
    limit = STEPS if cvs * prbs <= LARGE_SIZE else FEWER_STEPS
    bound, stalled, restart_step = np.inf, 0, FIRST_STEP
    for step in range(limit):
        prb_total = fill_worths(log_gain, inverse_gain, w, level, worth, best)
        total = prb_total + constraint_terms(weight, price, power, floor, ceiling, w, level)
        stalled = 0 if total < bound - PROGRESS * abs(total) else stalled + 1
        if total < bound:
            bound = total
            best_weight[:], best_level[:] = w, level
        elif total > bound + DIVERGED * abs(bound):
            w[:], level[:] = best_weight, best_level
            restart_step *= 0.5
            steps[:], slopes[:] = restart_step, 0.0
            prb_total = fill_worths(log_gain, inverse_gain, w, level, worth, best)
        if stalled > PATIENCE:
            break
        softness = (
            FIRST_SOFTNESS * (SOFTNESS / FIRST_SOFTNESS) ** min(1.0, 3 * step / limit) * prb_total / prbs + 1e-300
        )
        demands(worth, best, softness, log_gain, inverse_gain, level, near, share, rate, spent)
        for v in range(cvs):
            move(v, rate[v], power[v] - spent[v], weight, price, floor, ceiling, w, level, slopes, steps)
    return bound
