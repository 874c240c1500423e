"""Random problems of one slot, optimal allocations to compare with, and a check of the constraints."""

from itertools import product

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.optimize.rat.exact import split, subset_values
from vefl_sim.optimize.rat.large import powers
from vefl_sim.optimize.rat.problem import Allocation, RatAllocation, RatProblem, SlotProblem, new_allocation
from vefl_sim.optimize.rat.water import demand_of

SLOT_S, BANDWIDTH_HZ = 0.5e-3, 1.8e6
NATS = BANDWIDTH_HZ / np.log(2)


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


def random_problem(rng: np.random.Generator, cvs: int, prbs: int) -> RatProblem:
    """`random_scaled` in the units of the simulator, with C such that C + κQ differ by up to a factor of 4."""
    scaled = random_scaled(rng, cvs, prbs)
    bits = scaled.cap * NATS * SLOT_S
    tradeoff = float(SLOT_S * bits.max() / 3)
    return RatProblem(
        snr_per_watt=scaled.gain,
        max_power_w=scaled.power,
        bits_left=bits,
        floor_bps=scaled.floor * NATS,
        mean_bps=np.zeros(cvs),
        slot_s=SLOT_S,
        bandwidth_hz=BANDWIDTH_HZ,
        tradeoff=tradeoff,
        efficiency=scaled.price * NATS,
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
    cvs, prbs = scaled.gain.shape
    if cvs == 1:
        return evaluated(scaled, np.zeros(prbs, np.int64))
    value, deficit, share = np.empty((cvs, 1 << prbs)), np.empty((cvs, 1 << prbs)), np.zeros(cvs, np.int64)
    for v in range(cvs):
        subset_values(scaled.gain[v], demand_of(scaled, v), value[v], deficit[v])
    sizes = np.array([subset.bit_count() for subset in range(1 << prbs)])
    split(value - 1e7 * (scaled.weight.max() + scaled.price) * deficit, sizes, 0, share)
    owner = np.array([next(v for v in range(cvs) if share[v] >> z & 1) for z in range(prbs)])
    return evaluated(scaled, owner)


def check_constraints(scaled: SlotProblem, allocation: Allocation) -> None:
    """Check C7, C11 and C12, and that the rates follow from the powers and do not exceed the cap."""
    cvs, prbs = scaled.gain.shape
    owner, watts, rate = allocation
    assert owner.shape == watts.shape == (prbs,)
    assert owner.min() >= 0
    assert owner.max() < cvs
    assert np.all(watts >= 0)
    spent = np.bincount(owner, watts, cvs)
    carried = np.bincount(owner, np.log1p(scaled.gain[owner, np.arange(prbs)] * watts), cvs)
    assert np.all(spent <= scaled.power * (1 + 1e-9))
    assert np.all(rate <= scaled.cap * (1 + 1e-9))
    np.testing.assert_allclose(carried, rate, rtol=1e-7, atol=1e-9)


def scaled_rates(allocation: RatAllocation) -> Floats:
    return allocation.rate_bps / NATS
