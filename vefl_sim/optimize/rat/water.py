"""Water-filling: the powers of one CV over the pRBs it owns.

Everything is scaled: rates in nats per W′ = ω(1−υ)/ln 2, gains g in 1/W. The best powers have one level,
P_z = max(0, L − 1/g_z), with

    L = min(L_p, L_cap, max(a/λ, L_r)):

L_p spends all power, L_cap stops at the bits left, L_r meets the rate floor, a/λ is where power stops paying.
"""

import numpy as np

from vefl_sim.core.kernel import kernel


@kernel
def level_of(count, inverse_sum, log_sum, dear, power, floor, cap):
    """(L, rate) when exactly `count` pRBs are in use: P = count·L − Σ 1/g, rate = count·ln L + Σ ln g."""
    level_power = (power + inverse_sum) / count
    level = min(level_power, dear)
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
def pays(gain, level, first, dear, power, floor, cap):
    """Whether a pRB gets power, given the level of the better ones: it does if that lies above its 1/g."""
    if first:
        return gain > 0 and power > 0 and cap > 0 and (dear * gain > 1 or floor > 0)
    return level * gain > 1


@kernel
def fill(gain, mine, weight, price, power, floor, cap, watts):
    """Powers of one CV on its pRBs `mine` (numbers, in any order) into `watts`; returns (rate, power spent)."""
    dear = weight / price if price > 0 else np.inf
    order = mine[np.argsort(-gain[mine])]
    count, inverse_sum, log_sum, level, rate = 0, 0.0, 0.0, 0.0, 0.0
    for prb in order:
        if not pays(gain[prb], level, count == 0, dear, power, floor, cap):
            break
        count += 1
        inverse_sum += 1 / gain[prb]
        log_sum += np.log(gain[prb])
        level, rate = level_of(count, inverse_sum, log_sum, dear, power, floor, cap)
    spent = 0.0
    for index in range(len(order)):
        watts[order[index]] = level - 1 / gain[order[index]] if index < count else 0.0
        spent += watts[order[index]]
    return rate, spent
