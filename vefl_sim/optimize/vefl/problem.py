"""The VEFL sub-problem of one round: which CVs train, how many iterations, at what CPU frequency.

For a given number of iterations l the cheapest frequency that is fast enough is η(l) = max(η_min, l·cD/T), so
the energy e(l) = l·(ζ/2)·cD·η(l)² + e_tx and the cost φ·e(l) + φ̄ are tables over l. What remains is: at most N
CVs, one l each, total cost within Ξ, maximise Σ Θ_v·l_v — a multiple-choice knapsack. If all eligible CVs take part
(FDPC), each CV does at least lo_v iterations and the knapsack only decides the further ones: its values are Θ·(l − lo),
its costs cost(l) − cost(lo), its budget is Ξ − Σ cost(lo), and its relaxation is that of the problem without selection.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.optimize.knapsack import Choice, Knapsack, exact, search

VeflStatus = Literal["optimal", "gap", "nobody_in_coverage", "nobody_eligible", "budget_buys_nobody", "nobody_found"]
"""Whether the plan is proved optimal or has a gap, or why it is empty; `nobody_found`: the method itself failed."""
Limit = Literal["time", "cpu", "energy", "iterations"]
"""The constraint that prevents one more iteration: no time left, CPU too slow, energy budget, l_max."""
METHODS = ("lagrangian", "exact")
"""Our own methods."""
REFERENCES = ("sca", "sca-printed")
"""The paper's Algorithm 2 with CVXPY, repaired and as printed."""


@dataclass(frozen=True)
class VeflProblem:
    """The planning problem of one round. Arrays have one entry per CV in coverage."""

    weight: Floats  # Θ_v
    cycles: Floats  # c_v·D_v, CPU cycles per local iteration
    time_s: Floats  # T_v, time left for training; may be negative
    tx_energy_j: Floats  # e_tx, worst case
    energy_budget_j: Floats  # e_bud
    price_per_joule: Floats  # φ
    base_fee: Floats  # φ̄
    cpu_min_hz: Floats
    cpu_max_hz: Floats
    cpu_capacitance: float  # ζ
    budget: float  # Ξ
    max_selected: int  # N
    min_iterations: int  # l_des
    max_iterations: int  # l_max
    everybody: bool = False  # FDPC: all eligible CVs take part, and N has no effect

    @cached_property
    def iterations(self) -> Ints:
        """1 … l_max, the columns of the tables below."""
        return np.arange(1, self.max_iterations + 1)

    @cached_property
    def cpu_hz(self) -> Floats:
        """η(l), shape (V, l_max); infinite where no time is left for training."""
        time_s = np.where(self.time_s > 0, self.time_s, np.nan)
        with np.errstate(over="ignore"):
            needed = np.multiply.outer(self.cycles / time_s, self.iterations)
        return np.where(np.isnan(needed), np.inf, np.maximum(self.cpu_min_hz[:, None], needed))

    @cached_property
    def energy_j(self) -> Floats:
        """e_cmp(l) + e_tx, shape (V, l_max)."""
        with np.errstate(over="ignore"):
            per_cycle = self.cpu_capacitance / 2 * self.cpu_hz**2
            return np.multiply.outer(self.cycles, self.iterations) * per_cycle + self.tx_energy_j[:, None]

    @cached_property
    def cost(self) -> Floats:
        """Worst-case charge ξ̂(l), shape (V, l_max)."""
        with np.errstate(over="ignore", invalid="ignore"):  # ∞·0 where energy is free (φ = 0) and no time is left
            return self.energy_j * self.price_per_joule[:, None] + self.base_fee[:, None]

    @cached_property
    def most(self) -> Ints:
        """hi_v: the largest feasible l; 0 for a CV that is not eligible."""
        most: Ints = (self._within_cpu & self._within_energy).sum(axis=1)
        return most

    @cached_property
    def least(self) -> Ints:
        """lo_v: the least l of a CV that takes part, which is l_des, or hi_v if that is smaller."""
        return np.minimum(self.min_iterations, self.most)

    @property
    def entry_cost(self) -> Floats:
        """cost(lo_v), the least a CV costs if it takes part; 0 for a CV that is not eligible."""
        return np.where(self.least > 0, self.cost[np.arange(len(self.least)), np.maximum(self.least, 1) - 1], 0.0)

    @property
    def _within_cpu(self) -> NDArray[np.bool_]:
        return self.cpu_hz <= self.cpu_max_hz[:, None] * (1 + 1e-12)  # l = T·η_max/cD exactly is allowed

    @property
    def _within_energy(self) -> NDArray[np.bool_]:
        return self.energy_j <= self.energy_budget_j[:, None] * (1 + 1e-12)

    def limits(self) -> list[Limit]:
        """For each CV, the constraint that prevents hi_v + 1 iterations."""
        more = np.minimum(self.most, self.max_iterations - 1)
        rows = np.arange(len(more))
        slow, drained = ~self._within_cpu[rows, more], ~self._within_energy[rows, more]
        return [
            "time" if t <= 0 else "cpu" if s else "energy" if d else "iterations"
            for t, s, d in zip(self.time_s, slow, drained, strict=True)
        ]


@dataclass(frozen=True)
class VeflPlan:
    """The plan of one round, with an upper bound on the objective of any plan."""

    selected: Ints  # rows of the CVs that train, ascending
    iterations: Ints  # l of each selected CV
    cpu_hz: Floats  # η of each selected CV
    cost: float  # Σ ξ̂, worst case
    objective: float  # Σ Θ·l
    bound: float
    status: VeflStatus
    dropped: bool = False  # all CVs should take part, but Ξ does not pay lo_v for each: planned with a selection

    @property
    def gap(self) -> float:
        """(bound − objective) / bound; 0 when proved optimal."""
        return (self.bound - self.objective) / self.bound if self.bound > 0 else 0.0


def solve(problem: VeflProblem, method: str = "lagrangian") -> VeflPlan:
    """Plan one round. The bound is the Lagrangian's, or tighter with `exact`, so `gap` is a proof for every method."""
    if method not in (*METHODS, *REFERENCES):
        raise ValueError(f"unknown method {method!r}; use one of {', '.join((*METHODS, *REFERENCES))}")
    if not len(problem.cycles):
        return _empty_plan("nobody_in_coverage")
    if not problem.most.any():
        return _empty_plan("nobody_eligible")
    if problem.everybody and problem.entry_cost.sum() > _spendable(problem):
        selecting = replace(problem, everybody=False, max_selected=len(problem.cycles))
        return replace(solve(selecting, method), dropped=True)
    knapsack = _knapsack(problem)
    searched = search(knapsack, fees=not problem.everybody)
    choice = exact(knapsack, searched) if method == "exact" else searched.choice
    if not problem.everybody and not choice.taken.any():
        return _empty_plan("budget_buys_nobody")
    return _plan(problem, _iterations(problem, choice, method), choice.bound)


def _spendable(problem: VeflProblem) -> float:
    """Ξ plus a margin for the rounding of sums: a plan that costs exactly Ξ is allowed."""
    return problem.budget * (1 + 1e-12)


def _knapsack(problem: VeflProblem) -> Knapsack:
    """Value and cost of every l; if all CVs take part, those of the iterations beyond lo_v."""
    allowed = (problem.iterations >= problem.least[:, None]) & (problem.iterations <= problem.most[:, None])
    cost = np.where(allowed, problem.cost, np.inf)
    if not problem.everybody:
        value = np.multiply.outer(problem.weight, problem.iterations)
        return Knapsack(value, cost, _spendable(problem), problem.max_selected)
    entry = problem.entry_cost
    value = problem.weight[:, None] * (problem.iterations - problem.least[:, None])
    return Knapsack(value, cost - entry[:, None], _spendable(problem) - float(entry.sum()), len(entry))


def _iterations(problem: VeflProblem, choice: Choice, method: str) -> Ints:
    """l of every CV, 0 for CVs that are not selected."""
    if method in REFERENCES:
        from vefl_sim.optimize.vefl.sca import algorithm2, printed

        return algorithm2(problem) if method == "sca" else printed(problem)
    if_not_taken = problem.least if problem.everybody else 0
    return np.where(choice.taken, problem.iterations[choice.option], if_not_taken)


def _plan(problem: VeflProblem, iterations: Ints, bound: float) -> VeflPlan:
    """The plan with these l and the lowest sufficient frequencies; `bound` is that of the knapsack."""
    selected = np.flatnonzero(iterations)
    column = iterations[selected] - 1
    if problem.everybody:
        bound += float(problem.weight @ problem.least)
    objective = float(problem.weight @ iterations)
    optimal = objective >= bound * (1 - 1e-12)
    return VeflPlan(
        selected=selected,
        iterations=iterations[selected],
        cpu_hz=np.minimum(problem.cpu_hz[selected, column], problem.cpu_max_hz[selected]),
        cost=float(problem.cost[selected, column].sum()),
        objective=objective,
        bound=objective if optimal else bound,
        status="optimal" if optimal else "gap" if len(selected) else "nobody_found",
    )


def _empty_plan(status: VeflStatus) -> VeflPlan:
    return VeflPlan(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), 0.0, 0.0, 0.0, status)
