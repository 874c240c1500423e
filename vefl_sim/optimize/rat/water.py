"""Water-filling: the best powers of one CV on the pRBs it owns.

All quantities are scaled: rates in nats per W′ = ω(1−υ)/ln 2, gains g in 1/W. The best powers share one water level L,
P_z = max(0, L − 1/g_z), with

    L = min(L_p, L_cap, max(a/λ, L_r)):

L_p spends all power, L_cap sends all bits left, L_r meets the rate floor, and above a/λ further power costs more than
it gains.

At a low SNR 1/g is far larger than any power, and L − 1/g would be the difference of two almost equal numbers. So the
level is measured from 1/g of the CV's best pRB b: with x = L − 1/g_b and, for each pRB in use, d = 1/g − 1/g_b,

    P_z = x − d_z,   Σ P = n·x − Σ d,   rate = n·ln(1 + g_b·x) − Σ ln(g_b/g_z).
"""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.kernel import float_kernel as kernel


class Demand(NamedTuple):
    """What one CV wants: the entries of a `SlotProblem` that belong to it."""

    weight: float
    price: float
    power: float
    floor: float
    cap: float
    price_level: float  # a/λ


class PrbsInUse(NamedTuple):
    """The pRBs of one CV that get power."""

    number: float  # n
    best: float  # g_b, the largest gain
    ceiling: float  # x above which power costs more than it gains, a/λ − 1/g_b, at least 0
    spread: float  # Σ d
    log_spread: float  # Σ ln(g_b/g)


@kernel
def demand_of(problem, v):
    """The demand of CV v."""
    weight, price = problem.weight[v], problem.price
    price_level = weight / price if price > 0 else np.inf
    return Demand(weight, price, problem.power[v], problem.floor[v], problem.cap[v], price_level)


@kernel
def log_1p(y):
    """ln(1 + y) for y ≥ 0; log1p, which is three times slower, only where rounding 1 + y would count."""
    return np.log(1 + y) if y > 0.5 else np.log1p(y)


@kernel
def exp_m1(z):
    """e^z − 1 for z ≥ 0; expm1, which is slower, only where the difference would cancel."""
    return np.exp(z) - 1 if z > 0.5 else np.expm1(z)


@kernel
def behind(best, gain):
    """(1/g − 1/g_b, ln(g_b/g)) of a pRB that is not better than b."""
    if gain <= 0:
        return np.inf, np.inf
    ratio = (best - gain) / gain
    return ratio / best, log_1p(ratio)


@kernel
def is_useful(gain, cv):
    """Whether a CV sends on a pRB that is its only one."""
    return gain > 0 and cv.power > 0 and cv.cap > 0 and (cv.weight * gain > cv.price or cv.floor > 0)


@kernel
def only(gain, cv):
    """A single pRB in use."""
    return PrbsInUse(1.0, gain, max(0.0, cv.price_level - 1 / gain), 0.0, 0.0)


@kernel
def with_worse(use, distance, log_ratio):
    """The pRBs in use, and one more that is `behind` the best of them."""
    return PrbsInUse(use.number + 1, use.best, use.ceiling, use.spread + distance, use.log_spread + log_ratio)


@kernel
def water_level(use, cv):
    """(x, rate) when exactly these pRBs get power."""
    full = (cv.power + use.spread) / use.number
    x = min(full, use.ceiling)
    rate = use.number * log_1p(use.best * x) - use.log_spread
    if rate > cv.cap:
        return exp_m1((cv.cap + use.log_spread) / use.number) / use.best, cv.cap
    if rate < cv.floor and x < full:
        x = exp_m1((cv.floor + use.log_spread) / use.number) / use.best
        if x <= full:
            return x, cv.floor
        return full, use.number * log_1p(use.best * full) - use.log_spread
    return x, rate


@kernel
def on_one(gain, cv):
    """(rate, power) of a CV that owns one pRB."""
    if not is_useful(gain, cv):
        return 0.0, 0.0
    x, rate = water_level(only(gain, cv), cv)
    return rate, x


@kernel
def by_gain(gain, prbs):
    """Sort pRBs by their gains, largest first; by insertion, as a CV owns few."""
    for place in range(1, len(prbs)):
        prb, at = prbs[place], place
        while at > 0 and gain[prbs[at - 1]] < gain[prb]:
            prbs[at] = prbs[at - 1]
            at -= 1
        prbs[at] = prb


@kernel
def water_fill(gain, order, cv, watts):
    """Sort the pRBs of one CV `by_gain`, and fill `watts` on them; returns (rate, power spent)."""
    by_gain(gain, order)
    for prb in order:
        watts[prb] = 0.0
    if not len(order) or not is_useful(gain[order[0]], cv):
        return 0.0, 0.0
    use = only(gain[order[0]], cv)
    x, rate = water_level(use, cv)
    for prb in order[1:]:
        distance, log_ratio = behind(use.best, gain[prb])
        if not x > distance:
            break
        use = with_worse(use, distance, log_ratio)
        x, rate = water_level(use, cv)
    spent = 0.0
    for prb in order[: int(use.number)]:
        # The last pRB may get almost nothing; rounding must not make that negative.
        watts[prb] = max(0.0, x - (use.best - gain[prb]) / gain[prb] / use.best)
        spent += watts[prb]
    return rate, spent
