"""The paper's Algorithm 2 as it is printed (localIterGivenEtaPDCase2), to show that it achieves almost nothing.

Kept as printed: the sign of the η term of B1, so that a lower frequency leaves time for more iterations; B2 with its
signs and its denominator; the constant s_i in C1, C5, B1 and B2. Where the printed form cannot be run, the closest
literal form is used:
- B2 has l̃ on both sides and divides by l_i: multiplied out, so that l_i = 0 is no limit. It compares a number with
  a frequency, which is in Hz.
- The lower bound min{l_des, B1, B2} is not convex: evaluated at the last iterate, where it is a number.
- C1 has no variable: it is a condition on the last iterate, and where it does not hold, the step is infeasible.
- l_v^min is not given: 1.
CVs that are not eligible are left out here, too: with T_v < 0 the printed problem has no solution at all. Start,
penalty and precision are those of sca.py; η is in GHz inside the LP, which changes no solution. A CV gets the
iterations that fit its time at the frequency found, and the plan is shrunk to the budget.
"""

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.optimize.vefl.problem import VeflProblem
from vefl_sim.optimize.vefl.rounding import selection_limit, whole_iterations
from vefl_sim.optimize.vefl.sca import GHZ, Coefficients, Iterate, LinearProgram, first_iterate, iterate, joules


def linearised_as_printed(problem: VeflProblem, at: Iterate) -> Coefficients | None:
    """Time, energy and cost linearised at an iterate, as printed; None if C1 does not hold there."""
    if at.share.sum() > selection_limit(problem) * (1 + 1e-6):
        return None
    ratio, each_j = at.iterations / at.cpu_ghz, joules(problem, at.cpu_ghz)
    by_cpu = 2 * each_j * ratio  # ∂(l̃·E(η))/∂η
    in_time = at.share * iterations_in_time(problem, at.cpu_ghz)
    energy_j = at.share * (problem.energy_budget_j - problem.tx_energy_j)
    divisor = 2 * each_j * at.iterations / (at.cpu_ghz * GHZ)  # l_i·ζ·cD·η_i, J/Hz
    zeros = np.zeros(len(ratio))
    fixed = at.share @ (problem.price_per_joule * problem.tx_energy_j + problem.base_fee)
    bounds = [
        np.full(len(ratio), problem.min_iterations),
        in_time,
        _quotient(energy_j + at.iterations * each_j, divisor),
    ]
    return Coefficients(
        upper_l=np.stack([zeros + 1, divisor / each_j - 1]),
        upper_s=np.stack([zeros, zeros]),
        upper_cpu=np.stack([-ratio, zeros]),
        upper=np.stack([in_time + at.iterations, energy_j / each_j]),
        lower=np.min(bounds, axis=0),
        spent_l=problem.price_per_joule * each_j,
        spent_s=zeros,
        spent_cpu=problem.price_per_joule * by_cpu,
        budget=np.asarray(problem.budget - fixed + problem.price_per_joule @ (by_cpu * at.cpu_ghz)),
    )


def iterations_in_time(problem: VeflProblem, cpu_ghz: Floats) -> Floats:
    """T·η/cD, the number of iterations that fit the time at this frequency."""
    return problem.time_s * cpu_ghz * GHZ / problem.cycles


def _quotient(dividend: Floats, divisor: Floats) -> Floats:
    """dividend / divisor, infinite where the divisor is 0."""
    return np.where(divisor > 0, dividend / np.where(divisor > 0, divisor, 1.0), np.inf)


def printed(problem: VeflProblem) -> Ints:
    """Plan with Algorithm 2 as printed: l of every CV, 0 for CVs that are not selected."""

    def relaxed_iterations(eligible: VeflProblem) -> Floats | None:
        programme = LinearProgram(eligible, np.ones(len(eligible.cycles)), eligible.cpu_min_hz)
        last = iterate(first_iterate(eligible), lambda at: linearised_as_printed(eligible, at), programme.steps())
        if last is None:
            return None
        return np.minimum(last.iterations, np.floor(iterations_in_time(eligible, last.cpu_ghz)))

    return whole_iterations(problem, relaxed_iterations, fill=False)
