"""How much of the certified gap of `rat.method = "large"` is the solution's, and how much the bound's.

    python benchmarks/rat_gap.py [--seconds 60] [--problems 5]

HiGHS solves each problem as a mixed-integer linear programme, starting from our allocation. Its bound holds for the RAT
sub-problem, because tangents lie above the rate; its owners, with the best powers, are an allocation of the RAT
sub-problem, and our local search continues from them. The best of these and ours is the best known. Prints a table, one
row per problem; all gaps are relative to Σ a·r of the best known.
"""

from harness import Figures, keep, progress, show
from script import SMALL

import argparse
import statistics
import time
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from tests.optimize.problems import random_problem
from vefl_sim.core.arrays import Ints
from vefl_sim.optimize.rat.allocate import misses_a_floor
from vefl_sim.optimize.rat.large import large, new_holdings, new_market, powers, search_owners, survey
from vefl_sim.optimize.rat.problem import Allocation, SlotProblem, new_allocation

SIZES = ((10, 25),) if SMALL else ((10, 25), (10, 50), (15, 30), (25, 50))  # (V, Z)
TANGENTS = 2.0 ** -np.arange(0, 6.5, 0.5)  # powers where the rate is touched, as shares of P_max


def linearised(problem: SlotProblem, start: Allocation) -> highspy.Highs:
    """A solver with the rates replaced by their tangents, and with an allocation to start from.

    Variables, each of shape (V, Z): owned y (0 or 1), power p as a share of P_max, and rate r, with
    r ≤ y·ln(1 + Γs) + (p − s·y)·Γ/(1 + Γs) for each share s in TANGENTS, where Γ = g·P_max. It is tight for y = 1,
    p = s, and makes r = 0 for y = p = 0.
    """
    cvs, prbs = problem.gain.shape
    pairs, one, zero = cvs * prbs, sparse.eye_array(cvs * prbs), sparse.csr_array((cvs * prbs, cvs * prbs))
    snr = (problem.gain * problem.power[:, np.newaxis]).ravel()
    per_cv = sparse.kron(sparse.eye_array(cvs), np.ones((1, prbs)))
    per_prb = sparse.kron(np.ones((1, cvs)), sparse.eye_array(prbs))
    rows = [
        (sparse.hstack([per_prb, 0 * per_prb, 0 * per_prb]), -np.inf, np.ones(prbs)),  # one owner
        (sparse.hstack([0 * per_cv, per_cv, 0 * per_cv]), -np.inf, np.ones(cvs)),  # P_max
        (sparse.hstack([0 * per_cv, 0 * per_cv, per_cv]), problem.floor, problem.cap),
        (sparse.hstack([-one, one, zero]), -np.inf, np.zeros(pairs)),  # p ≤ y
    ]
    for share in TANGENTS:
        slope = snr / (1 + snr * share)
        at_zero = np.log1p(snr * share) - share * slope
        tangent = sparse.hstack([sparse.diags_array(-at_zero), sparse.diags_array(-slope), one])
        rows.append((tangent, -np.inf, np.zeros(pairs)))
    matrix = sparse.vstack([matrix for matrix, *_ in rows]).tocsr()
    low, high = (np.concatenate([np.broadcast_to(row[i], row[2].shape) for row in rows]) for i in (1, 2))
    cost = np.zeros(pairs), np.repeat(problem.price * problem.power, prbs), np.repeat(-problem.weight, prbs)
    solver = highspy.Highs()
    solver.silent()
    for name, value in (("threads", 1), ("mip_rel_gap", 1e-4)):
        solver.setOptionValue(name, value)
    solver.addVars(3 * pairs, np.zeros(3 * pairs), np.repeat([1.0, 1.0, np.inf], pairs))
    solver.changeColsCost(3 * pairs, np.arange(3 * pairs), np.concatenate(cost))
    solver.changeColsIntegrality(pairs, np.arange(pairs), np.full(pairs, highspy.HighsVarType.kInteger))
    solver.addRows(len(low), low, high, matrix.nnz, matrix.indptr[:-1], matrix.indices, matrix.data)
    owned = np.arange(cvs)[:, np.newaxis] == start.owner
    power = owned * start.watts / problem.power[:, np.newaxis]
    solution = highspy.HighsSolution()
    solution.col_value = np.concatenate([owned.ravel(), power.ravel(), np.log1p(snr * power.ravel())]).tolist()
    solver.setSolution(solution)
    return solver


def run(solver: highspy.Highs, seconds: float) -> None:
    """Run the solver until it is done or has used this CPU time, which other processes disturb less."""
    end = time.process_time() + seconds

    def look(event: Any) -> None:
        event.data_in.user_interrupt = time.process_time() > end

    solver.cbMipInterrupt.subscribe(look)
    solver.cbSimplexInterrupt.subscribe(look)
    solver.solve()


def compared(problem: SlotProblem, seconds: float) -> Figures | None:
    """The gaps in %, or None if we miss a floor."""
    ours, theirs = new_allocation(*problem.gain.shape), new_allocation(*problem.gain.shape)
    value, bound = large(problem, ours)
    if misses_a_floor(problem, ours):
        return None
    solver = linearised(problem, ours)
    run(solver, seconds)
    best, rate = value, ours.rate
    owned = np.array(solver.getSolution().col_value)[: problem.gain.size].reshape(problem.gain.shape)
    for owner in (owned.argmax(axis=0), improved(problem, owned.argmax(axis=0))):
        theirs.owner[:] = owner
        objective = powers(problem, theirs)
        if objective > best and not misses_a_floor(problem, theirs):
            best, rate = objective, theirs.rate.copy()
    percent = 100 / float(problem.weight @ rate)
    return {
        "certified": percent * (bound - value),
        "our solution": percent * (best - value),
        "our bound": percent * (bound - best),
        "bound of HiGHS": percent * (-solver.getInfo().mip_dual_bound - best),
    }


def improved(problem: SlotProblem, owner: Ints) -> Ints:
    """The owners after our local search."""
    found, holdings = survey(problem), new_holdings(*problem.gain.shape)
    holdings.owner[:] = owner
    search_owners(found.ground, holdings, new_market(found.gains), np.inf)
    return holdings.owner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU time of HiGHS for each problem (60)")
    parser.add_argument("--problems", type=int, default=5, help="number of problems of each size (5)")
    options = parser.parse_args()
    rows: dict[str, Figures] = {}
    for cvs, prbs in SIZES:
        of_size: list[Figures] = []
        for seed in range(10 * options.problems):
            progress(f"Z = {prbs}, V = {cvs}: problem {seed}")
            figures = compared(random_problem(cvs, prbs, seed).scaled, options.seconds)
            if figures and len(of_size) < options.problems:
                of_size.append(figures)
                rows[f"Z = {prbs}, V = {cvs}, seed {seed}"] = figures
            if len(of_size) == options.problems:
                break
        for name, choose in (("median", statistics.median), ("largest", max)):
            rows[f"Z = {prbs}, V = {cvs}, {name}"] = {
                label: choose(row[label] for row in of_size) for label in of_size[0]
            }
    show(f"Gaps in %, HiGHS for at most {options.seconds:g} s", rows)
    keep(__file__, rows)


if __name__ == "__main__":
    main()
