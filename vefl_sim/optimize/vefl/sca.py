"""The paper's method for the VEFL sub-problem (Algorithm 2, pdCase_CVSelLocalIter), with CVXPY: the reference to beat.

Selection and iterations are relaxed to s in [0, 1] and l̃ = s·l; time, energy and cost, products of l̃ and powers of η,
are linearised at the last point (s_i, l_i, η_i), and a penalty ϑ[Σs − Σ(s_i² + 2s_i(s − s_i))] pushes s to 0 or 1. Each
step is an LP in (s, l̃, η), solved with HiGHS. The paper's fourth variable l appears only in (ltildeCons2), which some l
always meets, and is left out. CVs that are not eligible are not in the problem.

Repairs, without which it reaches next to nothing (vefl_printed.py has the printed form):
- B1 has the sign of its η term turned round: l̃ ≤ [s·T + (l_i·cD/η_i²)(η − η_i)]·η_i/cD.
- B2 is solved for η, with two more signs wrong, and divides by l_i:
  l̃ ≤ [s(e_bud − e_tx) − l_i·ζ·cD·η_i(η − η_i)] / [(ζ/2)·cD·η_i²].
- C1, C5, B1 and B2 have the fixed point s_i where the variable s is meant.
- C6 and the lower bound min{l_des, B1, B2}, which is not convex, become l̃ ≥ s·lo_v.
- ϑ₀ = 0, η in GHz, and a stop on relative change.
- η ≥ η(lo_v) instead of η_min, which no plan misses: linearised at 1 kHz the limits have coefficients of 10⁸, and
  HiGHS takes the next step for infeasible.
- At the end: round, set η(l), shrink to the budget, and spend what is left of it on further iterations.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.optimize.modelling import cvxpy
from vefl_sim.optimize.vefl.problem import VeflProblem
from vefl_sim.optimize.vefl.rounding import selection_limit, whole_iterations

GHZ = 1e9
ITERATIONS = 20  # I
PRECISION = 1e-3  # ε_prec: relative change at which the iteration has converged
FIRST_PENALTY = 0.0  # ϑ₀; ϑ = ϑ₀ + i in iteration i


@dataclass(frozen=True)
class Iterate:
    """(s_i, l_i, η_i), one entry per eligible CV."""

    share: Floats
    iterations: Floats
    cpu_ghz: Floats

    def change_from(self, other: "Iterate") -> float:
        """The largest change relative to the size of its vector."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return max(float(np.abs(new - old).max() / max(np.abs(old).max(), 1e-9)) for new, old in pairs)


@dataclass(frozen=True)
class Linear:
    """A linearised problem: the numbers that change from step to step.

    upper_l·l̃ ≤ upper_s·s + upper_η·η + upper for time and energy, shape (2, CVs);
    l̃ ≥ lower; spent_l·l̃ + spent_s·s + spent_η·η ≤ budget.
    """

    upper_l: Floats
    upper_s: Floats
    upper_cpu: Floats
    upper: Floats
    lower: Floats
    spent_l: Floats
    spent_s: Floats
    spent_cpu: Floats
    budget: Floats


class Programme:
    """The LP, compiled once; every step sets its numbers."""

    def __init__(self, problem: VeflProblem, least: Floats, least_cpu_hz: Floats) -> None:
        """The limits that every step has: l̃ ≥ least·s, η ≥ least_cpu_hz, and those of the problem."""
        cp = cvxpy()
        cvs = len(problem.cycles)
        self.variables = [cp.Variable(cvs) for _ in range(3)]
        share, iterations, cpu = self.variables
        self.tilt = cp.Parameter(cvs)
        self.numbers = {name: cp.Parameter(_shape(name, cvs)) for name in Linear.__dataclass_fields__}
        n = self.numbers
        limits = [
            share >= (1 if problem.everybody else 0),
            share <= 1,
            iterations >= cp.multiply(least, share),
            iterations <= problem.max_iterations * share,
            iterations >= n["lower"],
            cpu >= least_cpu_hz / GHZ,
            cpu <= problem.cpu_max_hz / GHZ,
            n["spent_l"] @ iterations + n["spent_s"] @ share + n["spent_cpu"] @ cpu <= n["budget"],
        ]
        for row in range(2):
            by_l, by_s, by_cpu = (n[name][row] for name in ("upper_l", "upper_s", "upper_cpu"))
            room = cp.multiply(by_s, share) + cp.multiply(by_cpu, cpu) + n["upper"][row]
            limits.append(cp.multiply(by_l, iterations) <= room)
        self.limits = limits
        self.loss = cp.Minimize(self.tilt @ share - problem.weight @ iterations)

    def at_most(self, selection_limit: int) -> None:
        """C1, Σ s ≤ N."""
        self.limits.append(cvxpy().sum(self.variables[0]) <= selection_limit)

    def steps(self) -> Callable[[Linear, Floats], Iterate | None]:
        """The function that solves a step; it gives None if the solver fails or the step is infeasible or unbounded."""
        cp = cvxpy()
        programme = cp.Problem(self.loss, self.limits)

        def step(linear: Linear, tilt: Floats) -> Iterate | None:
            self.tilt.value = tilt
            for name, parameter in self.numbers.items():
                parameter.value = getattr(linear, name)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    programme.solve(solver=cp.SCIPY, scipy_options={"method": "highs"})
            except (cp.SolverError, ValueError):
                return None
            if programme.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
                return None
            return Iterate(*(np.asarray(variable.value, np.float64) for variable in self.variables))

        return step


def _shape(name: str, cvs: int) -> tuple[int, ...]:
    return () if name == "budget" else (2, cvs) if name.startswith("upper") else (cvs,)


def first_iterate(problem: VeflProblem) -> Iterate:
    """s = N/V and the same tenths of hi_v for all, as many as the budget allows.

    If it does not allow five, s is lower instead, unless everybody is in: from a small l and its low η no way leads up.
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
    at: Iterate, linearised: Callable[[Iterate], Linear | None], step: Callable[[Linear, Floats], Iterate | None]
) -> Iterate | None:
    """Algorithm 2 from a start; a step that fails ends it with the last point solved for, None if there is none."""
    found = None
    for iteration in range(1, ITERATIONS + 1):
        linear = linearised(at)
        following = None if linear is None else step(linear, (FIRST_PENALTY + iteration) * (1 - 2 * at.share))
        if following is None:
            break
        change, found, at = following.change_from(at), following, following
        if change < PRECISION:
            break
    return found


def linearised(problem: VeflProblem, at: Iterate) -> Linear:
    """Time, energy and cost at a point, with the repairs."""
    ratio, each_j = at.iterations / at.cpu_ghz, joules(problem, at.cpu_ghz)
    by_cpu = 2 * each_j * ratio  # ∂(l̃·E(η))/∂η
    in_time = problem.time_s * at.cpu_ghz * GHZ / problem.cycles
    in_energy = (problem.energy_budget_j - problem.tx_energy_j) / each_j
    return Linear(
        upper_l=np.ones((2, len(ratio))),
        upper_s=np.stack([in_time, in_energy]),
        upper_cpu=np.stack([ratio, -2 * ratio]),
        upper=np.stack([-at.iterations, 2 * at.iterations]),
        lower=np.zeros(len(ratio)),
        spent_l=problem.price_per_joule * each_j,
        spent_s=problem.price_per_joule * problem.tx_energy_j + problem.base_fee,
        spent_cpu=problem.price_per_joule * by_cpu,
        budget=np.asarray(problem.budget + problem.price_per_joule @ (by_cpu * at.cpu_ghz)),
    )


def algorithm2(problem: VeflProblem) -> Ints:
    """Algorithm 2 with its repairs: l of every CV, 0 for those that are not in."""

    def of_eligible(eligible: VeflProblem) -> Floats | None:
        least_cpu_hz = eligible.cpu_hz[np.arange(len(eligible.least)), eligible.least - 1]
        programme = Programme(
            eligible, eligible.least.astype(np.float64), np.minimum(least_cpu_hz, eligible.cpu_max_hz)
        )
        programme.at_most(selection_limit(eligible))
        found = iterate(first_iterate(eligible), lambda at: linearised(eligible, at), programme.steps())
        return None if found is None else found.iterations

    return whole_iterations(problem, of_eligible, fill=True)
