"""The VEFL sub-problem of one round: which CVs train, how many iterations, at what CPU frequency.

For a given number of iterations l the cheapest frequency that is fast enough is η(l) = max(η_min, l·cD/T), so
the energy e(l) = l·(ζ/2)·cD·η(l)² + e_tx and the cost φ·e(l) + φ̄ are tables over l. What remains is: at most N
CVs, one l each, total cost within Ξ, maximise Σ Θ_v·l_v — a multiple-choice knapsack.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vefl_sim.optimize.knapsack import Choice, Knapsack, lagrangian

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Status = Literal["optimal", "gap", "nobody_in_coverage", "nobody_eligible", "budget_buys_nobody"]
Limit = Literal["time", "cpu", "energy", "iterations"]
"""What keeps a CV from one more iteration: no time left, CPU too slow, energy budget, l_max."""


@dataclass(frozen=True)
class VeflProblem:
    """One round. Arrays have one entry per CV in coverage."""

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
    everybody: bool = False

    @cached_property
    def iterations(self) -> Ints:
        """1 … l_max, the columns of the tables below."""
        return np.arange(1, self.max_iterations + 1)

    @cached_property
    def cpu_hz(self) -> Floats:
        """η(l), shape (V, l_max); infinite where there is no time at all."""
        time_s = np.where(self.time_s > 0, self.time_s, np.nan)
        needed = np.multiply.outer(self.cycles / time_s, self.iterations)
        return np.where(np.isnan(needed), np.inf, np.maximum(self.cpu_min_hz[:, None], needed))

    @cached_property
    def energy_j(self) -> Floats:
        """e_cmp(l) + e_tx, shape (V, l_max)."""
        per_cycle = self.cpu_capacitance / 2 * self.cpu_hz**2
        return np.multiply.outer(self.cycles, self.iterations) * per_cycle + self.tx_energy_j[:, None]

    @cached_property
    def cost(self) -> Floats:
        """Worst-case charge ξ̂(l), shape (V, l_max)."""
        with np.errstate(invalid="ignore"):  # free energy (φ = 0) where there is no time: ∞·0
            return self.energy_j * self.price_per_joule[:, None] + self.base_fee[:, None]

    @cached_property
    def most(self) -> Ints:
        """hi_v: the largest feasible l; 0 for a CV that is not eligible."""
        most: Ints = (self._within_cpu & self._within_energy).sum(axis=1)
        return most

    @cached_property
    def least(self) -> Ints:
        """lo_v: l_des where it is possible, else what is."""
        return np.minimum(self.min_iterations, self.most)

    @property
    def _within_cpu(self) -> NDArray[np.bool_]:
        return self.cpu_hz <= self.cpu_max_hz[:, None] * (1 + 1e-12)  # l = T·η_max/cD exactly is allowed

    @property
    def _within_energy(self) -> NDArray[np.bool_]:
        return self.energy_j <= self.energy_budget_j[:, None] * (1 + 1e-12)

    def limits(self) -> list[Limit]:
        """The constraint that binds at one iteration more than hi_v, per CV."""
        more = np.minimum(self.most, self.max_iterations - 1)
        rows = np.arange(len(more))
        slow, drained = ~self._within_cpu[rows, more], ~self._within_energy[rows, more]
        return [
            "time" if t <= 0 else "cpu" if s else "energy" if d else "iterations"
            for t, s, d in zip(self.time_s, slow, drained, strict=True)
        ]


@dataclass(frozen=True)
class VeflPlan:
    """The answer, with a bound on what any plan could reach."""

    selected: Ints  # rows of the CVs that train, ascending
    iterations: Ints  # l of each selected CV
    cpu_hz: Floats  # η of each selected CV
    cost: float  # Σ ξ̂, worst case
    objective: float  # Σ Θ·l
    bound: float
    status: Status
    dropped: bool = False

    @property
    def gap(self) -> float:
        """(bound − objective) / bound; 0 when proved optimal."""
        return (self.bound - self.objective) / self.bound if self.bound > 0 else 0.0


def solve(problem: VeflProblem, method: str = "lagrangian") -> VeflPlan:
    """Plan one round."""
    if method != "lagrangian":
        raise ValueError(f"unknown method {method!r}")
    if not len(problem.cycles):
        return _nobody("nobody_in_coverage")
    if not problem.most.any():
        return _nobody("nobody_eligible")
    choice = lagrangian(_knapsack(problem))
    if not choice.taken.any():
        return _nobody("budget_buys_nobody")
    return _plan(problem, choice)


def _knapsack(problem: VeflProblem) -> Knapsack:
    allowed = (problem.iterations >= problem.least[:, None]) & (problem.iterations <= problem.most[:, None])
    return Knapsack(
        value=np.multiply.outer(problem.weight, problem.iterations),
        cost=np.where(allowed, problem.cost, np.inf),
        budget=problem.budget,
        most_items=problem.max_selected,
    )


def _plan(problem: VeflProblem, choice: Choice) -> VeflPlan:
    selected = np.flatnonzero(choice.taken)
    column = choice.option[selected]
    optimal = choice.value >= choice.bound * (1 - 1e-12)
    return VeflPlan(
        selected=selected,
        iterations=problem.iterations[column],
        cpu_hz=np.minimum(problem.cpu_hz[selected, column], problem.cpu_max_hz[selected]),
        cost=float(problem.cost[selected, column].sum()),
        objective=choice.value,
        bound=choice.value if optimal else choice.bound,
        status="optimal" if optimal else "gap",
    )


def _nobody(status: Status) -> VeflPlan:
    return VeflPlan(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), 0.0, 0.0, 0.0, status)
