"""From the relaxed iterations of an SCA method to a plan: whole numbers, and a cost within the budget."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.optimize.vefl.problem import VeflProblem


def selection_limit(problem: VeflProblem) -> int:
    """N; all CVs if everybody is in."""
    return len(problem.cycles) if problem.everybody else min(problem.max_selected, len(problem.cycles))


def whole_iterations(problem: VeflProblem, method: Callable[[VeflProblem], Floats | None], *, fill: bool) -> Ints:
    """Run a method that finds l̃ on the eligible CVs, round, and shrink to the budget; 0 for everybody else.

    With `fill`, the money that is left then buys further iterations of the selected CVs. If the method finds nothing,
    nobody is in, or everybody with lo_v where that is asked for; filling that would not be the method's merit.
    """
    rows = np.flatnonzero(problem.most)
    arrays = {name: value[rows] for name, value in vars(problem).items() if _per_cv(name, value)}
    eligible = replace(problem, **arrays)
    found = method(eligible)
    within = shrunk(eligible, rounded(eligible, np.zeros(len(rows)) if found is None else found))
    l = np.zeros(len(problem.most), np.int64)
    l[rows] = spend_rest(eligible, within) if fill and found is not None else within
    return l


def _per_cv(name: str, value: Any) -> bool:
    return name in VeflProblem.__dataclass_fields__ and isinstance(value, np.ndarray)


def rounded(problem: VeflProblem, iterations: Floats) -> Ints:
    """The N largest Θ·l̃, to whole numbers from lo_v to hi_v; below a half, a CV is not in unless everybody is."""
    l = np.clip(np.round(iterations), problem.least, problem.most).astype(np.int64)
    if not problem.everybody:
        l[iterations < 0.5] = 0
        l[np.argsort(-problem.weight * iterations, kind="stable")[selection_limit(problem) :]] = 0
    return l


def shrunk(problem: VeflProblem, l: Ints) -> Ints:
    """Take away the iteration or the whole CV that is worth least per money saved, until the cost is within Ξ.

    A CV is taken away only if a selection is allowed.
    """
    cost = _cost_from_zero(problem)
    rows, l = np.arange(len(l)), l.copy()
    while cost[rows, l].sum() > problem.budget and np.any(l > (problem.least if problem.everybody else 0)):
        less = np.stack([np.where(l > problem.least, l - 1, l), l if problem.everybody else np.zeros_like(l)])
        saved, lost = cost[rows, l] - cost[rows, less], problem.weight * (l - less)
        price = np.where(l > less, lost / np.maximum(saved, 1e-300), np.inf)
        way, cv = divmod(int(price.argmin()), len(l))
        l[cv] = less[way, cv]
    return l


def spend_rest(problem: VeflProblem, l: Ints) -> Ints:
    """Add the iteration of a selected CV that is worth most per money, until no further one fits within Ξ."""
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
    """The cost of 0, 1, … l_max iterations, shape (V, 1 + l_max); a CV that does nothing costs nothing."""
    return np.column_stack([np.zeros(len(problem.cost)), problem.cost])
