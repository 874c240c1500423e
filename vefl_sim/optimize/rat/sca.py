"""The paper's method for the RAT sub-problem (Algorithm 4, rATOptimization), with CVXPY: the reference to beat.

Owners are relaxed to I in [0, 1] and pushed back to 0 or 1 by a linearised penalty that grows with the iteration
(fdRATequivalProb2). In the paper's units no solver copes (U is 10⁸ to 10¹⁰, ϑ about 10), so here P is in units of
P_max, U in units of W′·mean a, and ln(1 + cx) is written ln c + ln(1/c + x). C8 is the sum of C7 and is dropped, and so
is P itself: P̃ ≤ I·P_max says all that its constraints say about the other variables.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.optimize.modelling import cvxpy
from vefl_sim.optimize.rat.large import powers
from vefl_sim.optimize.rat.problem import RatAllocation, RatProblem, Scaled

PRECISION = 1e-3  # ε_prec: largest change of an I at which the iteration has converged
FIRST_PENALTY = 0.0  # ϑ₀; ϑ = ϑ₀ + j in iteration j
LEAST_SNR = 1e-6  # of P_max on one pRB: below, 1/c is too large for a solver and the rate is nothing


@dataclass(frozen=True)
class Relaxation:
    """The convex problem of one iteration. Only `tilt` = ϑ(1 − 2I_j) changes, so it is compiled once."""

    problem: Any
    share: Any  # I, shape (V, Z)
    tilt: Any

    def solve(self, penalty: float, share: Floats) -> Floats | None:
        """Solve with the penalty linearised at `share`: I, or None if the solver fails or the floors are infeasible."""
        cp = cvxpy()
        self.tilt.value = penalty * (1 - 2 * share)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.problem.solve(solver=cp.CLARABEL)
        except cp.SolverError:
            return None
        solved = self.problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
        return np.asarray(self.share.value) if solved else None


def relax(scaled: Scaled, *, perspective: bool) -> Relaxation:
    """Minimise Ũ/mean(a) + ΣΣ tilt·I subject to C7, P̃ ≤ I·P_max, C11, C12, floors and caps.

    A rate of its own, floor ≤ r ≤ min(cap, Σ ln(1 + cx)), keeps the cap convex. The paper's rate ignores I, so all CVs
    may share a pRB and each use it whole; with `perspective` it is I·ln(1 + cx/I), time sharing.
    """
    cp = cvxpy()
    cvs, _ = scaled.gain.shape
    snr = np.maximum(scaled.gain * scaled.power[:, None], LEAST_SNR)
    share, part = cp.Variable(snr.shape, nonneg=True), cp.Variable(snr.shape, nonneg=True)
    rate, tilt = cp.Variable(cvs), cp.Parameter(snr.shape)
    if perspective:
        nats = cp.multiply(np.log(snr), share) - cp.rel_entr(share, cp.multiply(1 / snr, share) + part)
    else:
        nats = np.log(snr) + cp.log(1 / snr + part)
    mean = max(float(scaled.weight.mean()), 1e-300)
    energy = scaled.price / mean * (scaled.power @ cp.sum(part, axis=1))
    loss = energy - (scaled.weight / mean) @ rate + cp.sum(cp.multiply(tilt, share))
    limits = [
        cp.sum(share, axis=0) == 1,
        part <= share,
        cp.sum(part, axis=1) <= 1,
        rate <= cp.sum(nats, axis=1),
        rate >= scaled.floor,
        rate <= scaled.cap,
    ]
    return Relaxation(cp.Problem(cp.Minimize(loss), limits), share, tilt)


def relaxed_shares(relaxation: Relaxation, start: Floats, iterations: int) -> Floats | None:
    """The last I that could be solved for, by Algorithm 4; None if there is none."""
    found, at = None, start
    for iteration in range(1, iterations + 1):
        following = relaxation.solve(FIRST_PENALTY + iteration, at)
        if following is None:
            return found
        change, found, at = float(np.abs(following - at).max()), following, following
        if change < PRECISION and iteration > 1:  # at the start, I = 1/V everywhere, the penalty has no slope
            return found
    return found


def allocation_of(problem: RatProblem, owner: Ints) -> RatAllocation:
    """The allocation with these owners and the best powers."""
    scaled, nats = problem.scaled, problem.bandwidth_hz / np.log(2)
    watts, rate = np.zeros(len(owner)), np.zeros(len(scaled.weight))
    objective, _ = powers(
        scaled.gain, scaled.weight, scaled.price, scaled.power, scaled.floor, scaled.cap, owner, watts, rate
    )
    missed = bool(np.any(rate < scaled.floor * (1 - 1e-9)))
    return RatAllocation(
        owner=owner,
        power_w=watts,
        rate_bps=rate * nats,
        objective=float(objective) * nats,
        bound=float("nan"),
        status="infeasible_floors" if missed else "gap",
    )


def algorithm4(problem: RatProblem, *, perspective: bool = False, iterations: int = 10) -> RatAllocation:
    """Algorithm 4, then every pRB to its largest I and the best powers; equal sharing if nothing could be solved."""
    cvs, prbs = problem.snr_per_watt.shape
    relaxation = relax(problem.scaled, perspective=perspective)
    found = relaxed_shares(relaxation, np.full((cvs, prbs), 1 / cvs), iterations)
    owner = np.arange(prbs) % cvs if found is None else found.argmax(axis=0)
    return allocation_of(problem, owner.astype(np.int64))
