"""Random problems of one slot in the units of the kernels, and optimal allocations."""

from itertools import product

import numpy as np

from vefl_sim.core.arrays import Ints
from vefl_sim.optimize.rat.allocate import best_sets
from vefl_sim.optimize.rat.large import powers
from vefl_sim.optimize.rat.problem import Allocation, SlotProblem, new_allocation


def random_scaled(
    rng: np.random.Generator, cvs: int, prbs: int, *, tight: float = 1.0, scale: float = 1.0
) -> SlotProblem:
    """Gains over four decades, floors of 5–60 % (times `tight`) of the rate of 1/V of the pRBs, caps above."""
    gain = rng.gamma(4, size=(cvs, prbs)) * 10 ** rng.uniform(0, 4, size=(cvs, 1))
    power, prbs_per_cv = np.full(cvs, 0.2), prbs / cvs
    floor = rng.uniform(0.05, 0.6, cvs) * prbs_per_cv * np.log1p(gain.mean(axis=1) * power / prbs_per_cv)
    return SlotProblem(
        gain=gain,
        weight=scale * rng.uniform(0.5, 2, cvs),
        price=0.0 if rng.random() < 0.3 else scale * rng.uniform(0.1, 10),
        power=power,
        floor=tight * floor,
        cap=floor * np.maximum(tight, rng.uniform(1, 10, cvs)),
        mean=np.zeros(cvs),
    )


def evaluated(scaled: SlotProblem, owner: Ints) -> tuple[float, float]:
    """(deficit, objective) of these owners with the best powers."""
    allocation = new_allocation(*scaled.gain.shape)
    allocation.owner[:] = owner
    objective = powers(scaled, allocation)
    return missed(scaled, allocation), objective


def missed(scaled: SlotProblem, allocation: Allocation) -> float:
    """Total deficit."""
    return float(np.maximum(0, scaled.floor - allocation.rate).sum())


def enumerated(scaled: SlotProblem) -> tuple[float, float]:
    """(deficit, objective) of the best of all V^Z assignments."""
    cvs, prbs = scaled.gain.shape
    outcomes = (evaluated(scaled, np.array(owner)) for owner in product(range(cvs), repeat=prbs))
    return min(outcomes, key=lambda pair: (round(pair[0], 12), -pair[1]))


def exact(scaled: SlotProblem) -> tuple[float, float]:
    """(deficit, objective) of the optimum, by dynamic programming over subsets."""
    owner = np.zeros(scaled.gain.shape[1], np.int64)
    best_sets(scaled, None, True, owner)
    return evaluated(scaled, owner)
