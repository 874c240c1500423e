"""The paper's method for the RAT sub-problem (Algorithm 4, rATOptimization), with CVXPY, as a reference.

Owners are relaxed to I in [0, 1] and pushed back to 0 or 1 by a linearised penalty that grows with the iteration
(fdRATequivalProb2). No solver can handle the paper's units (U is 10⁸ to 10¹⁰, ϑ about 10), so here P is in units of
P_max, U in units of W′·mean a, and ln(1 + cx) is written ln c + ln(1/c + x). C8 is the sum of C7 and is dropped, and so
is P itself: P̃ ≤ I·P_max implies all that its constraints require of the other variables.
"""

from typing import Any

import numpy as np

from vefl_sim.optimize import cvxpy, is_solved
from vefl_sim.optimize.rat.allocate import misses_a_floor
from vefl_sim.optimize.rat.large import powers
from vefl_sim.optimize.rat.problem import RatAllocation, RatProblem, SlotProblem, new_allocation

PRECISION = 1e-3  # ε_prec: largest change of an I at which the iteration has converged
FIRST_PENALTY = 0.0  # ϑ₀; ϑ = ϑ₀ + j in iteration j
LEAST_SNR = 1e-6  # SNR c of P_max on one pRB: below it, 1/c is too large for a solver and the rate is negligible


def relax(scaled: SlotProblem, *, perspective: bool) -> tuple[Any, Any, Any]:
    """Minimise Ũ/mean(a) + ΣΣ tilt·I subject to C7, P̃ ≤ I·P_max, C11, C12, floors and caps.

    Returns the convex problem, its variable I, and the parameter tilt = ϑ(1 − 2I_j), with the penalty linearised at the
    last I. Nothing else changes from one iteration to the next, so CVXPY compiles it once.

    The rate is a variable, floor ≤ r ≤ min(cap, Σ ln(1 + cx)), which keeps the cap convex. The paper's rate ignores I,
    so CVs that share a pRB all have the whole of it; with `perspective` it is I·ln(1 + cx/I), which is time sharing.
    """
    cp = cvxpy()
    cvs, _ = scaled.gain.shape
    snr = np.maximum(scaled.gain * scaled.power[:, None], LEAST_SNR)
    share, power_share = cp.Variable(snr.shape, nonneg=True), cp.Variable(snr.shape, nonneg=True)
    rate, tilt = cp.Variable(cvs), cp.Parameter(snr.shape)
    if perspective:
        nats = cp.multiply(np.log(snr), share) - cp.rel_entr(share, cp.multiply(1 / snr, share) + power_share)
    else:
        nats = np.log(snr) + cp.log(1 / snr + power_share)
    mean = max(float(scaled.weight.mean()), 1e-300)
    energy = scaled.price / mean * (scaled.power @ cp.sum(power_share, axis=1))
    loss = energy - (scaled.weight / mean) @ rate + cp.sum(cp.multiply(tilt, share))
    limits = [
        cp.sum(share, axis=0) == 1,
        power_share <= share,
        cp.sum(power_share, axis=1) <= 1,
        rate <= cp.sum(nats, axis=1),
        rate >= scaled.floor,
        rate <= scaled.cap,
    ]
    return cp.Problem(cp.Minimize(loss), limits), share, tilt


def algorithm4(problem: RatProblem, *, perspective: bool = False, iterations: int = 10) -> RatAllocation:
    """Run Algorithm 4, give every pRB to the CV with the largest I, and compute the best powers.

    If an iteration cannot be solved, the last I counts; if none can be solved, the pRBs are shared equally.
    """
    scaled, (cvs, prbs) = problem.scaled, problem.snr_per_watt.shape
    relaxed, share, tilt = relax(scaled, perspective=perspective)
    last, at = None, np.full((cvs, prbs), 1 / cvs)
    for iteration in range(1, iterations + 1):
        tilt.value = (FIRST_PENALTY + iteration) * (1 - 2 * at)
        if not is_solved(relaxed, solver="CLARABEL"):
            break
        next_share = np.asarray(share.value)
        change, last, at = float(np.abs(next_share - at).max()), next_share, next_share
        if change < PRECISION and iteration > 1:  # at the start, with I = 1/V everywhere, the penalty has no slope
            break
    allocation = new_allocation(cvs, prbs)
    allocation.owner[:] = np.arange(prbs) % cvs if last is None else last.argmax(axis=0)
    objective = powers(scaled, allocation)
    return RatAllocation(
        owner=allocation.owner,
        power_w=allocation.watts,
        rate_bps=allocation.rate * problem.nats_hz,
        objective=float(objective) * problem.nats_hz * problem.largest_weight,
        bound=float("nan"),
        status="infeasible_floors" if misses_a_floor(scaled, allocation) else "gap",
    )
