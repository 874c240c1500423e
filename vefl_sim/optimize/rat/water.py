"""Water-filling: the best powers of one CV on the pRBs it owns.

All quantities are scaled: rates in nats per W′ = ω(1−υ)/ln 2, gains g in 1/W. The best powers share one water level L,
P_z = max(0, L − 1/g_z), with

    L = min(L_p, L_cap, max(a/λ, L_r)):

L_p spends all power, L_cap sends all bits left, L_r meets the rate floor, and above a/λ (`price_level`) further power
costs more than it gains.
"""

import numpy as np

from vefl_sim.core.kernel import kernel


@kernel
def water_level(count, inverse_sum, log_sum, price_level, power, floor, cap):
    """(L, rate) when exactly `count` pRBs are in use: P = count·L − Σ 1/g, rate = count·ln L + Σ ln g."""
    level_power = (power + inverse_sum) / count
    level = min(level_power, price_level)
    rate = count * np.log(level) + log_sum
    if rate > cap:
        return np.exp((cap - log_sum) / count), cap
    if rate < floor and level < level_power:
        level = np.exp((floor - log_sum) / count)
        if level <= level_power:
            return level, floor
        return level_power, count * np.log(level_power) + log_sum
    return level, rate


@kernel
def gets_power(gain, level, first, price_level, power, floor, cap):
    """Whether a pRB gets power, given the water level of the better pRBs: it does if that level is above its 1/g."""
    if first:
        return gain > 0 and power > 0 and cap > 0 and (price_level * gain > 1 or floor > 0)
    return level * gain > 1


@kernel
def water_fill(gain, owned, weight, price, power, floor, cap, watts):
    """Fill `watts` on the pRBs `owned` by one CV (their numbers, in any order); returns (rate, power spent)."""
    price_level = weight / price if price > 0 else np.inf
    order = owned[np.argsort(-gain[owned])]
    count, inverse_sum, log_sum, level, rate = 0, 0.0, 0.0, 0.0, 0.0
    for prb in order:
        if not gets_power(gain[prb], level, count == 0, price_level, power, floor, cap):
            break
        count += 1
        inverse_sum += 1 / gain[prb]
        log_sum += np.log(gain[prb])
        level, rate = water_level(count, inverse_sum, log_sum, price_level, power, floor, cap)
    spent = 0.0
    for index in range(len(order)):
        watts[order[index]] = level - 1 / gain[order[index]] if index < count else 0.0
        spent += watts[order[index]]
    return rate, spent
