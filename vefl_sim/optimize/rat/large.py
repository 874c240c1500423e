"""The RAT sub-problem for any number of pRBs: owners from prices, improved by trading, with an upper bound."""

import numpy as np

from vefl_sim.core.kernel import kernel
from vefl_sim.optimize.rat.assignment import assign
from vefl_sim.optimize.rat.dual import prices
from vefl_sim.optimize.rat.local_search import better, greedy, hand_out, improve, outcome
from vefl_sim.optimize.rat.water import fill

NEAR = (0.05, 0.2, 0.8, np.inf)  # of the mean worth of a pRB: what an exchange may lose at first
EFFORT = 40  # evaluations of one CV per pRB that the local search may spend


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
def cheapest(gain, loss, weight, owner):
    """Every pRB to the CV that loses nothing; one that nobody wants at these prices, to the largest w·g."""
    for prb in range(len(owner)):
        owner[prb] = np.argmin(loss[:, prb])
        if loss[:, prb].max() == 0:
            owner[prb] = np.argmax(weight * gain[:, prb])


@kernel
def powers(gain, weight, price, power, floor, cap, owner, watts, rate):
    """Fill watts (Z,) and rate (V,) by water-filling each CV; returns (objective, deficit)."""
    objective, deficit = 0.0, 0.0
    for v in range(len(weight)):
        mine = np.flatnonzero(owner == v)
        rate[v], spent = fill(gain[v], mine, weight[v], price, power[v], floor[v], cap[v], watts)
        objective += weight[v] * rate[v] - price * spent
        deficit += max(0.0, floor[v] - rate[v])
    return objective, deficit


@kernel
def trade(inverse, log_gain, constants, scale, loss, bound, owner, held, count):
    """Improve `owner`, likely exchanges first; returns (deficit, value)."""
    prbs = len(owner)
    hand_out(owner, log_gain, held, count)
    deficit, value, effort = 0.0, 0.0, EFFORT * prbs
    for near in NEAR:
        room = near * abs(bound) / prbs
        deficit, value, effort = improve(
            inverse, log_gain, constants, scale, loss, bound, room, effort, owner, held, count
        )
    return deficit, value


@kernel
def one_each(inverse, log_gain, constants, scale, owner):
    """Give every CV the one pRB by which the total deficit is least (then the value largest); the rest keep `owner`.

    Trading one or two pRBs at a time can miss this where almost every CV has just one.
    """
    cvs, prbs = log_gain.shape
    value, column, none = np.zeros((prbs, prbs)), np.empty(prbs, np.int64), np.zeros(1, np.int64)
    for v in range(cvs):
        for prb in range(prbs):
            deficit, worth = outcome(inverse[v], log_gain[v], none, 0, constants[v], -1, prb)
            value[v, prb] = 1e-6 * worth / scale[1] - deficit / scale[0]
    assign(value, column)
    for v in range(cvs):
        owner[column[v]] = v


@kernel
def large(gain, weight, price, power, floor, cap, owner, watts, rate):
    """Fill owner (Z,), watts (Z,) and rate (V,); returns (objective, bound, deficit).

    Start from the owners that the prices favour and trade; the plain greedy allocation takes over if it is better
    than the outcome, and if a floor is still unmet, one pRB each is a third start. The bound holds for allocations
    that meet the floors.
    """
    cvs, prbs = gain.shape
    w, level, loss = np.empty(cvs), np.empty(cvs), np.empty(gain.shape)
    bound = prices(gain, weight, price, power, floor, cap, w, level)
    ownership_losses(gain, w, level, loss)
    cheapest(gain, loss, w, owner)
    dear = np.log(np.maximum(weight, 1e-300) / price) if price > 0 else np.full(cvs, np.inf)
    constants = np.stack((weight, np.full(cvs, price), power, floor, cap, dear), axis=1)
    scale = (floor.sum() + 1e-300, abs(bound) + 1e-300)
    inverse, log_gain = 1 / np.maximum(gain, 1e-300), np.log(np.maximum(gain, 1e-300))
    held, count, plain = np.empty(gain.shape, np.int64), np.zeros(cvs, np.int64), np.empty(prbs, np.int64)
    deficit, value = trade(inverse, log_gain, constants, scale, loss, bound, owner, held, count)
    less, more = greedy(inverse, log_gain, constants, scale, plain, held, count)
    if better(less - deficit, more - value, scale):
        deficit, value = trade(inverse, log_gain, constants, scale, loss, bound, plain, held, count)
        owner[:] = plain
    if deficit > 0:
        plain[:] = owner
        one_each(inverse, log_gain, constants, scale, plain)
        less, more = trade(inverse, log_gain, constants, scale, loss, bound, plain, held, count)
        if better(less - deficit, more - value, scale):
            owner[:] = plain
    objective, deficit = powers(gain, weight, price, power, floor, cap, owner, watts, rate)
    return objective, max(bound, objective) if deficit == 0 else bound, deficit
