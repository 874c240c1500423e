"""The paper's method for the VEFL sub-problem (Algorithm 2, pdCase_CVSelLocalIter), with CVXPY, as a reference.

Selection and iterations are relaxed to s in [0, 1] and l̃ = s·l; time, energy and cost, products of l̃ and powers of η,
are linearised at the last iterate (s_i, l_i, η_i), and a penalty ϑ[Σs − Σ(s_i² + 2s_i(s − s_i))] pushes s to 0 or 1.
Each step is an LP in (s, l̃, η), solved with HiGHS. The paper's fourth variable l appears only in (ltildeCons2), which
some l always satisfies, and is left out. CVs that are not eligible are left out of the problem.

Repairs, without which it achieves almost nothing (`printed` has the printed form):
- The sign of the η term of B1 is reversed: l̃ ≤ [s·T + (l_i·cD/η_i²)(η − η_i)]·η_i/cD.
- B2 as printed is solved for η, has two more wrong signs and divides by l_i; here:
  l̃ ≤ [s(e_bud − e_tx) − l_i·ζ·cD·η_i(η − η_i)] / [(ζ/2)·cD·η_i²].
- C1, C5, B1 and B2 as printed have the constant s_i where the variable s is meant.
- C6 and the lower bound min{l_des, B1, B2}, which is not convex, become l̃ ≥ s·lo_v.
- ϑ₀ = 0, η is in GHz, and the iteration stops on a small relative change.
- η ≥ η(lo_v) instead of η_min, which excludes no plan: linearised at 1 kHz the limits have coefficients of 10⁸, and
  HiGHS reports the next step as infeasible.
- At the end: round, set η(l), shrink to the budget, and spend the rest of the budget on further iterations.

Algorithm 2 as it is printed (localIterGivenEtaPDCase2) is there to show that it achieves almost nothing.
Kept as printed: the sign of the η term of B1, so that a lower frequency leaves time for more iterations; B2 with its
signs and its denominator; the constant s_i in C1, C5, B1 and B2. Where the printed form cannot be run, the closest
literal form is used:
- B2 has l̃ on both sides and divides by l_i: multiplied out, so that l_i = 0 is no limit. It compares a number with
  a frequency, which is in Hz.
- The lower bound min{l_des, B1, B2} is not convex: evaluated at the last iterate, where it is a number.
- C1 has no variable: it is a condition on the last iterate, and where it does not hold, the step is infeasible.
- l_v^min is not given: 1.
CVs that are not eligible are left out here, too: with T_v < 0 the printed problem has no solution at all. Start,
penalty and precision are those of the repaired form; η is in GHz inside the LP, which changes no solution. A CV gets
the iterations that fit its time at the frequency found, and the plan is shrunk to the budget.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.optimize import cvxpy, is_solved
from vefl_sim.optimize.vefl.problem import VeflProblem


def selection_limit(problem: VeflProblem) -> int:
    """How many CVs may be selected: N, or all CVs if all take part."""
    return len(problem.cycles) if problem.everybody else min(problem.max_selected, len(problem.cycles))


def whole_iterations(problem: VeflProblem, method: Callable[[VeflProblem], Floats | None], *, fill: bool) -> Ints:
    """Run a method that finds l̃ of the eligible CVs, round, and shrink to the budget; 0 for all other CVs.

    With `fill`, the unspent budget then buys further iterations of the selected CVs. If the method finds nothing, no CV
    is selected, or every CV with lo_v if all take part; such a plan is not filled, as it is not the method's result.
    """
    rows = np.flatnonzero(problem.most)
    given = {field.name: getattr(problem, field.name) for field in fields(problem)}
    per_cv: dict[str, Any] = {name: value[rows] for name, value in given.items() if isinstance(value, np.ndarray)}
    eligible: VeflProblem = replace(problem, **per_cv)
    relaxed = method(eligible)
    affordable = shrunk(eligible, rounded(eligible, np.zeros(len(rows)) if relaxed is None else relaxed))
    l = np.zeros(len(problem.most), np.int64)
    l[rows] = spend_rest(eligible, affordable) if fill and relaxed is not None else affordable
    return l


def rounded(problem: VeflProblem, iterations: Floats) -> Ints:
    """Whole l from lo_v to hi_v for the CVs with the N largest Θ·l̃.

    A CV with l̃ < 0.5 is not selected, unless all take part.
    """
    l = np.clip(np.round(iterations), problem.least, problem.most).astype(np.int64)
    if not problem.everybody:
        l[iterations < 0.5] = 0
        l[np.argsort(-problem.weight * iterations, kind="stable")[selection_limit(problem) :]] = 0
    return l


def shrunk(problem: VeflProblem, l: Ints) -> Ints:
    """Remove the iteration or the whole CV with the least value per cost saved, until the cost is within Ξ.

    Whole CVs are removed only if not all have to take part.
    """
    cost = _cost_from_zero(problem)
    rows, l = np.arange(len(l)), l.copy()
    while cost[rows, l].sum() > problem.budget and np.any(l > (problem.least if problem.everybody else 0)):
        less = np.stack([np.where(l > problem.least, l - 1, l), l if problem.everybody else np.zeros_like(l)])
        saved, lost = cost[rows, l] - cost[rows, less], problem.weight * (l - less)
        price = np.where(l > less, lost / np.maximum(saved, 1e-300), np.inf)
        option, cv = divmod(int(price.argmin()), len(l))
        l[cv] = less[option, cv]
    return l


def spend_rest(problem: VeflProblem, l: Ints) -> Ints:
    """Add the iteration of a selected CV with the most value per cost, until no further one fits within Ξ."""
    cost = _cost_from_zero(problem)
    rows, l = np.arange(len(l)), l.copy()
    while True:
        more = np.where(l > 0, np.minimum(l + 1, problem.most), l)
        added = cost[rows, more] - cost[rows, l]
        fits = (more > l) & (cost[rows, l].sum() + added <= problem.budget)
        if not fits.any():
            return l
        worth = np.where(fits, problem.weight / np.maximum(added, 1e-300), -np.inf)
        l[int(worth.argmax())] += 1


def _cost_from_zero(problem: VeflProblem) -> Floats:
    """The cost of 0, 1, … l_max iterations, shape (V, 1 + l_max); a CV that is not selected costs 0."""
    return np.column_stack([np.zeros(len(problem.cost)), problem.cost])


GHZ = 1e9
ITERATIONS = 20  # I
PRECISION = 1e-3  # ε_prec: relative change at which the iteration has converged
FIRST_PENALTY = 0.0  # ϑ₀; ϑ = ϑ₀ + i in iteration i


@dataclass(frozen=True)
class Iterate:
    """A point of the iteration, (s_i, l_i, η_i), with one entry per eligible CV."""

    share: Floats
    iterations: Floats
    cpu_ghz: Floats

    def change_from(self, other: "Iterate") -> float:
        """The largest change of any entry, relative to the largest entry of its vector."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return max(float(np.abs(new - old).max() / max(np.abs(old).max(), 1e-9)) for new, old in pairs)


Coefficients = dict[str, Floats]
"""Coefficients of the linearised constraints, which change from step to step, by their names in `LinearProgram`."""


class LinearProgram:
    """The LP of a step; CVXPY compiles it once, and every step sets its coefficients.

    upper_l·l̃ ≤ upper_s·s + upper_cpu·η + upper for time and energy, shape (2, CVs);
    l̃ ≥ lower; spent_l·l̃ + spent_s·s + spent_cpu·η ≤ budget.
    """

    def __init__(self, problem: VeflProblem, least: Floats, least_cpu_hz: Floats, *, most: int | None) -> None:
        """Set up the constraints of every step: l̃ ≥ least·s, η ≥ least_cpu_hz, Σ s ≤ most (C1), and the others."""
        cp = cvxpy()
        cvs = len(problem.cycles)
        self.variables = share, iterations, cpu = [cp.Variable(cvs) for _ in range(3)]
        self.tilt = cp.Parameter(cvs)
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("upper_l", "upper_s", "upper_cpu", "upper"), (2, cvs))
        shapes |= dict.fromkeys(("lower", "spent_l", "spent_s", "spent_cpu"), (cvs,)) | {"budget": ()}
        self.parameters = p = {name: cp.Parameter(shape) for name, shape in shapes.items()}
        limits = [
            share >= (1 if problem.everybody else 0),
            share <= 1,
            iterations >= cp.multiply(least, share),
            iterations <= problem.max_iterations * share,
            iterations >= p["lower"],
            cpu >= least_cpu_hz / GHZ,
            cpu <= problem.cpu_max_hz / GHZ,
            p["spent_l"] @ iterations + p["spent_s"] @ share + p["spent_cpu"] @ cpu <= p["budget"],
        ]
        for row in range(2):
            room = cp.multiply(p["upper_s"][row], share) + cp.multiply(p["upper_cpu"][row], cpu) + p["upper"][row]
            limits.append(cp.multiply(p["upper_l"][row], iterations) <= room)
        if most is not None:
            limits.append(cp.sum(share) <= most)
        self.programme = cp.Problem(cp.Minimize(self.tilt @ share - problem.weight @ iterations), limits)

    def step(self, linear: Coefficients, tilt: Floats) -> Iterate | None:
        """Solve one step; None if the solver fails or the LP is infeasible or unbounded."""
        self.tilt.value = tilt
        for name, parameter in self.parameters.items():
            parameter.value = linear[name]
        if not is_solved(self.programme, solver="SCIPY", scipy_options={"method": "highs"}):
            return None
        return Iterate(*(np.asarray(variable.value, np.float64) for variable in self.variables))


def first_iterate(problem: VeflProblem) -> Iterate:
    """The start: s = N/V, and l = the same number of tenths of hi_v for all CVs, as many as the budget allows.

    If it allows fewer than five, s is lowered instead (unless all CVs take part), because the iteration cannot climb
    from a small l with its low η.
    """
    cvs = np.arange(len(problem.cycles))
    share = selection_limit(problem) / len(cvs)
    for tenths in range(10, -1 if problem.everybody else 4, -1):
        l = np.maximum(problem.least, np.round(problem.most * tenths / 10)).astype(np.int64)
        cost = float(problem.cost[cvs, l - 1].sum())
        if share * cost <= problem.budget:
            break
    share = share if share * cost <= problem.budget else problem.budget / cost
    cpu_hz = np.minimum(problem.cpu_hz[cvs, l - 1], problem.cpu_max_hz)
    return Iterate(np.full(len(cvs), share), np.multiply(share, l, dtype=np.float64), cpu_hz / GHZ)


def joules(problem: VeflProblem, cpu_ghz: Floats) -> Floats:
    """Energy of one iteration, (ζ/2)·cD·η²."""
    return problem.cpu_capacitance / 2 * problem.cycles * (cpu_ghz * GHZ) ** 2


def iterate(
    problem: VeflProblem,
    programme: LinearProgram,
    linearise: Callable[[VeflProblem, Iterate], Coefficients | None],
) -> Iterate | None:
    """Run Algorithm 2; returns the last iterate solved for, or None if already the first step fails."""
    at, last = first_iterate(problem), None
    for iteration in range(1, ITERATIONS + 1):
        linear = linearise(problem, at) if np.all(at.cpu_ghz > 0) else None  # solvers round the least frequencies to 0
        next_iterate = (
            None if linear is None else programme.step(linear, (FIRST_PENALTY + iteration) * (1 - 2 * at.share))
        )
        if next_iterate is None:
            break
        change, last, at = next_iterate.change_from(at), next_iterate, next_iterate
        if change < PRECISION:
            break
    return last


def linearised(problem: VeflProblem, at: Iterate) -> Coefficients:
    """Time, energy and cost linearised at an iterate, with the repairs."""
    ratio, each_j = at.iterations / at.cpu_ghz, joules(problem, at.cpu_ghz)
    by_cpu = 2 * each_j * ratio  # ∂(l̃·E(η))/∂η
    in_time = problem.time_s * at.cpu_ghz * GHZ / problem.cycles
    in_energy = (problem.energy_budget_j - problem.tx_energy_j) / each_j
    return {
        "upper_l": np.ones((2, len(ratio))),
        "upper_s": np.stack([in_time, in_energy]),
        "upper_cpu": np.stack([ratio, -2 * ratio]),
        "upper": np.stack([-at.iterations, 2 * at.iterations]),
        "lower": np.zeros(len(ratio)),
        "spent_l": problem.price_per_joule * each_j,
        "spent_s": problem.price_per_joule * problem.tx_energy_j + problem.base_fee,
        "spent_cpu": problem.price_per_joule * by_cpu,
        "budget": np.asarray(problem.budget + problem.price_per_joule @ (by_cpu * at.cpu_ghz)),
    }


def algorithm2(problem: VeflProblem) -> Ints:
    """Plan with the repaired Algorithm 2: l of every CV, 0 for CVs that are not selected."""

    def relaxed_iterations(eligible: VeflProblem) -> Floats | None:
        least_cpu_hz = eligible.cpu_hz[np.arange(len(eligible.least)), eligible.least - 1]
        least, least_cpu_hz = eligible.least.astype(np.float64), np.minimum(least_cpu_hz, eligible.cpu_max_hz)
        programme = LinearProgram(eligible, least, least_cpu_hz, most=selection_limit(eligible))
        last = iterate(eligible, programme, linearised)
        return None if last is None else last.iterations

    return whole_iterations(problem, relaxed_iterations, fill=True)


def linearised_as_printed(problem: VeflProblem, at: Iterate) -> Coefficients | None:
    """Time, energy and cost linearised at an iterate, as printed; None if C1 does not hold there."""
    if at.share.sum() > selection_limit(problem) * (1 + 1e-6):
        return None
    ratio, each_j = at.iterations / at.cpu_ghz, joules(problem, at.cpu_ghz)
    by_cpu = 2 * each_j * ratio  # ∂(l̃·E(η))/∂η
    in_time = at.share * iterations_in_time(problem, at.cpu_ghz)
    energy_j = at.share * (problem.energy_budget_j - problem.tx_energy_j)
    divisor = 2 * each_j * at.iterations / (at.cpu_ghz * GHZ)  # l_i·ζ·cD·η_i, J/Hz
    moves, zeros = divisor > 0, np.zeros(len(ratio))
    fixed = at.share @ (problem.price_per_joule * problem.tx_energy_j + problem.base_fee)
    bounds = [
        np.full(len(ratio), problem.min_iterations),
        in_time,
        np.where(moves, (energy_j + at.iterations * each_j) / np.where(moves, divisor, 1.0), np.inf),
    ]
    return {
        "upper_l": np.stack([zeros + 1, divisor / each_j - 1]),
        "upper_s": np.stack([zeros, zeros]),
        "upper_cpu": np.stack([-ratio, zeros]),
        "upper": np.stack([in_time + at.iterations, energy_j / each_j]),
        "lower": np.min(bounds, axis=0),
        "spent_l": problem.price_per_joule * each_j,
        "spent_s": zeros,
        "spent_cpu": problem.price_per_joule * by_cpu,
        "budget": np.asarray(problem.budget - fixed + problem.price_per_joule @ (by_cpu * at.cpu_ghz)),
    }


def iterations_in_time(problem: VeflProblem, cpu_ghz: Floats) -> Floats:
    """T·η/cD, the number of iterations that fit the time at this frequency."""
    return problem.time_s * cpu_ghz * GHZ / problem.cycles


def printed(problem: VeflProblem) -> Ints:
    """Plan with Algorithm 2 as printed: l of every CV, 0 for CVs that are not selected."""

    def relaxed_iterations(eligible: VeflProblem) -> Floats | None:
        programme = LinearProgram(eligible, np.ones(len(eligible.cycles)), eligible.cpu_min_hz, most=None)
        last = iterate(eligible, programme, linearised_as_printed)
        if last is None:
            return None
        return np.minimum(last.iterations, np.floor(iterations_in_time(eligible, last.cpu_ghz)))

    return whole_iterations(problem, relaxed_iterations, fill=False)
