"""Close the gap of the Lagrangian relaxation: drop the options its bound excludes, solve the rest with HiGHS (MILP)."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import csr_array

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.optimize.knapsack import (
    ROUNDING_MARGIN,
    CardinalityCase,
    Choice,
    Flags,
    Knapsack,
    Search,
    chosen,
    losses,
    single_case,
)

ROUNDING = 1e-12  # relative: by how much a choice may exceed the budget; HiGHS by itself allows more
SCALE = 1e4  # bound and budget are scaled to this for HiGHS, whose tolerances, near 1e-6, are absolute
OPTIMAL, INFEASIBLE = 0, 2  # statuses of scipy.optimize.milp


@dataclass(frozen=True)
class Remainder:
    """The options (item, column) that a better choice could still contain."""

    knapsack: Knapsack
    item: Ints
    column: Ints
    value: Floats
    cost: Floats
    must: Flags  # shape (items,): items that every better choice contains

    def picked(self, mask: Flags) -> Choice:
        """The choice made of the options in the mask."""
        taken = np.zeros(len(self.must), np.bool_)
        option = np.zeros(len(self.must), np.int64)
        taken[self.item[mask]], option[self.item[mask]] = True, self.column[mask]
        return chosen(self.knapsack, taken, option)

    def cover(self, mask: Flags) -> Floats:
        """Row of the cut Σ x ≤ |mask| − 1: these options, or dearer ones of the same items, never fit all together."""
        least = np.full(len(self.must), np.inf)
        least[self.item[mask]] = self.cost[mask]
        return (self.cost >= least[self.item]).astype(np.float64)


def exact(knapsack: Knapsack, searched: Search) -> Choice:
    """The optimum, from one MILP for each number of items that could still give a better choice.

    If HiGHS gives up on a case, the bound of that case is kept, and a gap remains.
    """
    if searched.choice.proved:
        return searched.choice
    if searched.reduced is None:
        searched = single_case(knapsack, searched.choice)
    assert searched.reduced is not None
    best, bound = searched.choice, searched.choice.value
    for case in searched.cases:
        if case.choice.bound > best.value:
            better, proved = solve_case(case, best.value)
            if better is not None and better.value > best.value:
                best = replace(searched.reduced.expanded(better), price=best.price)
            if not proved:
                bound = max(bound, case.choice.bound)
    return replace(best, bound=max(bound, best.value))


def solve_case(case: CardinalityCase, least: float) -> tuple[Choice | None, bool]:
    """The best choice of a case if it is worth more than `least`, and whether that is proved.

    HiGHS accepts a choice that exceeds the budget by a millionth. Such a choice is a cover: it is excluded by a cut,
    and HiGHS is run again, until its answer is within the budget.
    """
    remaining = remainder(case, least)
    cuts: list[LinearConstraint] = []
    while len(remaining.item):
        result = _highs(remaining, cuts)
        if result.status != OPTIMAL:
            return None, result.status == INFEASIBLE
        mask = result.x > 0.5
        best = remaining.picked(mask)
        if best.cost <= remaining.knapsack.budget * (1 + ROUNDING):
            return best, True
        cuts.append(LinearConstraint(remaining.cover(mask)[None], 0, int(mask.sum()) - 1))
    return None, True


def remainder(case: CardinalityCase, least: float) -> Remainder:
    """The (item, option) pairs whose forced bound, L_n − loss, exceeds `least`, and the items needed to exceed it."""
    knapsack, bound = case.knapsack, case.choice.bound
    loss = losses(knapsack, case.choice.price)
    slack = bound - least + ROUNDING_MARGIN * bound
    item, column = np.nonzero((loss.inside <= slack) & (knapsack.cost <= knapsack.budget))
    return Remainder(
        knapsack=knapsack,
        item=item,
        column=column,
        value=knapsack.value[item, column],
        cost=knapsack.cost[item, column],
        must=loss.outside > slack,
    )


def _highs(rest: Remainder, cuts: list[LinearConstraint]) -> OptimizeResult:
    """Maximise Σ value·x over binary x with HiGHS: one option per item, n items, within the budget."""
    items, variables, count = len(rest.must), len(rest.item), rest.knapsack.most_items
    pick = csr_array((np.ones(variables), (rest.item, np.arange(variables))), shape=(items, variables))
    limits = [
        LinearConstraint(pick, rest.must.astype(np.float64), 1),
        LinearConstraint(np.ones((1, variables)), count if rest.knapsack.exactly else 0, count),
        LinearConstraint(rest.cost[None] * SCALE / max(rest.knapsack.budget, 1e-300), 0, SCALE),
        *cuts,
    ]
    return milp(
        -rest.value * SCALE / (rest.value.max() * count),
        integrality=np.ones(variables, np.int64),
        bounds=Bounds(0, 1),
        constraints=limits,
        options={"mip_rel_gap": 0.0},
    )
