"""Attack the methods for the RAT sub-problem with problems from realistic to absurd, against the laws of a slot."""

from dataclasses import asdict
from typing import Any

import numpy as np

from tests.fuzz.problems import Fields, ProblemAttack, log_uniform, one_of
from tests.optimize.problems import COMPILED, random_problem
from tests.optimize.rat.rat_laws import best_by_force, check, meets_floors, rounding
from vefl_sim.core.arrays import Floats
from vefl_sim.experiment.kinds import RAT_METHODS
from vefl_sim.optimize.rat.problem import EXACT_PRBS, RatProblem, solve

PER_NAT = 1 / float(np.log(2))
DENORMAL = 5e-324
FORCE = 81  # assignments of pRBs to CVs that brute force goes through
REFERENCES = [method for method in RAT_METHODS if method not in COMPILED]


def draw(rng: np.random.Generator) -> Fields:
    """A slot like those of a run (one in five), or an absurd one; in one of 2000 the slow references solve it, too."""
    prbs = int(one_of(rng, *[rng.integers(1, 7)] * 40, rng.integers(7, 13), rng.integers(13, 61)))
    cvs = int(rng.integers(1, prbs + 1))
    if rng.random() < 0.2:
        fields = asdict(random_problem(cvs, prbs, int(rng.integers(2**31)), tightness=log_uniform(rng, -1, 3)))
    else:
        fields = absurd(rng, cvs, prbs)
    return fields | {"references": bool(rng.random() < 1 / 2000 and prbs <= 4)}


def absurd(rng: np.random.Generator, cvs: int, prbs: int) -> Fields:
    """Any magnitudes, in which limits still bind: each is drawn freely, or near the value at which it would."""
    gain = gains(rng, cvs, prbs)
    largest = max(float(gain.max()), 1e-30)
    near = log_uniform(rng, -16, 16, cvs) / largest
    power = one_of(rng, near[0], near, 0.2, log_uniform(rng, -30, 30), rng.choice([0.0, DENORMAL, 1.0, 1e30], cvs))
    slot_s = one_of(rng, 5e-4, 1.0, log_uniform(rng, -9, 3))
    nats_hz = one_of(rng, 1.8e6, 1.0, log_uniform(rng, -3, 12))
    reachable = nats_hz * np.log1p(gain * np.reshape(power, (-1, 1))).sum(axis=1)  # bit/s
    near = np.minimum(reachable * slot_s * log_uniform(rng, -3, 3, cvs), 1e18)
    bits = one_of(rng, near, log_uniform(rng, -20, 18, cvs), rng.choice([0.0, DENORMAL, 1e-300, 1.0, 1e18], cvs))
    bits *= rng.random(cvs) > rng.choice([0.0, 0.3])
    most = slot_s * float(bits.max())
    tradeoff = one_of(rng, 0.0, most * rng.choice([0.1, 1.0, 10.0]), log_uniform(rng, -300, 290))
    break_even = min(nats_hz * largest * (1 + most / max(tradeoff, 1e-300)), 1e300)
    return {
        "snr_per_watt": gain,
        "max_power_w": power * np.ones(cvs),
        "bits_left": bits,
        "floor_bps": floors(rng, bits / slot_s, reachable / prbs),
        "mean_bps": log_uniform(rng, -300, 18, cvs) * rng.integers(2),
        "slot_s": slot_s,
        "bandwidth_hz": nats_hz / PER_NAT,
        "tradeoff": tradeoff,
        "efficiency": one_of(
            rng, 0.0, break_even * rng.choice([1e-20, 1e-6, 0.5, 1.0, 2.0]), log_uniform(rng, -30, 30)
        ),
    }


def gains(rng: np.random.Generator, cvs: int, prbs: int) -> Floats:
    """SNRs per watt from 1e-30 to 1e30: all alike, almost alike, or far apart; some CVs are the same, some gains 0."""
    spread = rng.choice([0.0, 1e-15, 1e-13, 1e-6, 1e-3, 1.0, 10.0, 30.0])
    each = rng.uniform(-1, 1, (cvs, one_of(rng, 1, prbs)))
    gain = 10.0 ** np.clip(rng.uniform(-30, 30) + spread * each + np.zeros((cvs, prbs)), -30, 30)
    if rng.random() < 0.2:
        gain[rng.integers(cvs)] = gain[rng.integers(cvs)]
    if rng.random() < 0.3:
        gain[rng.random(gain.shape) < 0.3] = rng.choice([0.0, 0.0, DENORMAL, 1e-310, 1e-300])
    return gain


def floors(rng: np.random.Generator, caps: Floats, reachable: Floats) -> Floats:
    """Floors of 0, of a share of what a CV can send, or of its cap over the slots left; never above the cap."""
    share = reachable * rng.choice([0.0, 1e-9, 0.01, 0.3, 0.9, 1.0, 3.0], len(caps))
    in_slots = caps / rng.choice([1.0, 2.0, 10.0, 1e6, 1e18], len(caps))
    mixed = np.where(rng.random(len(caps)) < 0.5, share, in_slots)
    return np.minimum(one_of(rng, 0.0, share, in_slots, mixed, rng.choice([0.0, DENORMAL, 1e-300], len(caps))), caps)


def laws(fields: Fields) -> None:
    """All methods obey the laws of a slot, and none beats an exact one, which brute force confirms if it can."""
    references = fields.pop("references", False)
    values: dict[str, Any] = {name: np.array(v) if isinstance(v, list) else v for name, v in fields.items()}
    try:
        problem = RatProblem(**values)
    except ValueError:  # refused, in a sentence
        return
    cvs, prbs = problem.snr_per_watt.shape
    methods = [name for name in COMPILED if name != "exact" or prbs <= EXACT_PRBS]
    found = {method: solve(problem, method) for method in methods + REFERENCES * references}
    for method, allocation in found.items():
        check(problem, allocation, bounded=method in COMPILED)
    if prbs > EXACT_PRBS:
        return
    exact, meeting = found["exact"], [one for one in found.values() if meets_floors(problem, one)]
    assert found["auto"].status == exact.status == ("optimal" if meeting else "infeasible_floors")
    for allocation in meeting:
        tolerance = rounding(problem, exact) + rounding(problem, allocation)
        assert allocation.objective <= exact.objective + tolerance
        assert not allocation.bound < exact.objective - tolerance  # nan: none is computed
    if cvs > 1 and cvs**prbs <= FORCE:
        best = best_by_force(problem)
        for allocation in (exact, found["auto"]):
            assert (best is None) == (allocation.status == "infeasible_floors")
            assert best is None or abs(allocation.objective - best) <= 2 * rounding(problem, allocation)


ATTACK = ProblemAttack("rat-problems", 1_000_000, draw, laws)
