"""Turn the relaxed iterations of an SCA method into a plan: whole numbers, and a cost within the budget."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
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
    arrays = {name: value[rows] for name, value in vars(problem).items() if _per_cv(name, value)}
    eligible = replace(problem, **arrays)
    relaxed = method(eligible)
    affordable = shrunk(eligible, rounded(eligible, np.zeros(len(rows)) if relaxed is None else relaxed))
    l = np.zeros(len(problem.most), np.int64)
    l[rows] = spend_rest(eligible, affordable) if fill and relaxed is not None else affordable
    return l


def _per_cv(name: str, value: Any) -> bool:
    return name in VeflProblem.__dataclass_fields__ and isinstance(value, np.ndarray)


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
