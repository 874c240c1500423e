"""The RAT sub-problem for any number of pRBs: owners from prices, improved by local search, with an upper bound."""

import numpy as np

from vefl_sim.core.kernel import kernel
from vefl_sim.optimize.rat.assignment import assign
from vefl_sim.optimize.rat.dual import prices
from vefl_sim.optimize.rat.local_search import better, fill_lists, greedy, improve, outcome
from vefl_sim.optimize.rat.water import water_fill

NEAR = (0.05, 0.2, 0.8, np.inf)  # of the mean worth of a pRB: largest loss of an exchange, stage by stage
EFFORT = 40  # evaluations per pRB that the local search may spend


@kernel
def ownership_losses(gain, weight, level, loss):
    """Fill loss (V, Z) = max_u h_uz − h_vz at the prices (w, L): what CV v as owner costs the Lagrangian."""
    cvs, prbs = gain.shape
    for prb in range(prbs):
        best = 0.0
        for v in range(cvs):
            snr = gain[v, prb] * level[v]
            loss[v, prb] = -weight[v] * (np.log(snr) - 1 + 1 / snr) if snr > 1 else 0.0
            best = max(best, -loss[v, prb])
        loss[:, prb] += best


@kernel
def owners_by_loss(gain, loss, weight, owner):
    """Give every pRB to the CV with loss 0, or to the largest w·g if it is worth 0 to all CVs at these prices."""
    for prb in range(len(owner)):
        owner[prb] = np.argmin(loss[:, prb])
        if loss[:, prb].max() == 0:
            owner[prb] = np.argmax(weight * gain[:, prb])


@kernel
def powers(gain, weight, price, power, floor, cap, owner, watts, rate):
    """Fill watts (Z,) and rate (V,) by water-filling for each CV; returns (objective, deficit)."""
    objective, deficit = 0.0, 0.0
    for v in range(len(weight)):
        owned = np.flatnonzero(owner == v)
        rate[v], spent = water_fill(gain[v], owned, weight[v], price, power[v], floor[v], cap[v], watts)
        objective += weight[v] * rate[v] - price * spent
        deficit += max(0.0, floor[v] - rate[v])
    return objective, deficit


@kernel
def search_owners(inverse, log_gain, constants, scale, loss, bound, owner, held, count):
    """Improve `owner` by local search, exchanges with small losses first; returns (deficit, value)."""
    prbs = len(owner)
    fill_lists(owner, log_gain, held, count)
    deficit, value, effort = 0.0, 0.0, EFFORT * prbs
    for near in NEAR:
        room = near * abs(bound) / prbs
        deficit, value, effort = improve(
            inverse, log_gain, constants, scale, loss, bound, room, effort, owner, held, count
        )
    return deficit, value


@kernel
def one_each(inverse, log_gain, constants, scale, owner):
    """Give every CV one pRB so that the total deficit is least (then the value largest); the rest keep `owner`.

    Moving one or two pRBs at a time can miss this where almost every CV has just one.
    """
    cvs, prbs = log_gain.shape
    value, column, no_prbs = np.zeros((prbs, prbs)), np.empty(prbs, np.int64), np.zeros(1, np.int64)
    for v in range(cvs):
        for prb in range(prbs):
            deficit, worth = outcome(inverse[v], log_gain[v], no_prbs, 0, constants[v], -1, prb)
            value[v, prb] = 1e-6 * worth / scale[1] - deficit / scale[0]
    assign(value, column)
    for v in range(cvs):
        owner[column[v]] = v


@kernel
def large(gain, weight, price, power, floor, cap, owner, watts, rate):
    """Fill owner (Z,), watts (Z,) and rate (V,); returns (objective, bound, deficit).

    The local search starts from the owners that the prices favour; it is repeated from the greedy allocation if that
    is better than its result, and from one pRB each if a floor is still unmet. The bound holds for allocations that
    meet the floors.
    """
    cvs, prbs = gain.shape
    w, level, loss = np.empty(cvs), np.empty(cvs), np.empty(gain.shape)
    bound = prices(gain, weight, price, power, floor, cap, w, level)
    ownership_losses(gain, w, level, loss)
    owners_by_loss(gain, loss, w, owner)
    log_price_level = np.log(np.maximum(weight, 1e-300) / price) if price > 0 else np.full(cvs, np.inf)
    constants = np.stack((weight, np.full(cvs, price), power, floor, cap, log_price_level), axis=1)
    scale = (floor.sum() + 1e-300, abs(bound) + 1e-300)
    inverse, log_gain = 1 / np.maximum(gain, 1e-300), np.log(np.maximum(gain, 1e-300))
    held, count, other_owner = np.empty(gain.shape, np.int64), np.zeros(cvs, np.int64), np.empty(prbs, np.int64)
    deficit, value = search_owners(inverse, log_gain, constants, scale, loss, bound, owner, held, count)
    other_deficit, other_value = greedy(inverse, log_gain, constants, scale, other_owner, held, count)
    if better(other_deficit - deficit, other_value - value, scale):
        deficit, value = search_owners(inverse, log_gain, constants, scale, loss, bound, other_owner, held, count)
        owner[:] = other_owner
    if deficit > 0:
        other_owner[:] = owner
        one_each(inverse, log_gain, constants, scale, other_owner)
        other_deficit, other_value = search_owners(
            inverse, log_gain, constants, scale, loss, bound, other_owner, held, count
        )
        if better(other_deficit - deficit, other_value - value, scale):
            owner[:] = other_owner
    objective, deficit = powers(gain, weight, price, power, floor, cap, owner, watts, rate)
    return objective, max(bound, objective) if deficit == 0 else bound, deficit
