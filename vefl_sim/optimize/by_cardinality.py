"""A knapsack whose items have fees, solved for each number of items separately.

The relaxation may mix a choice of seven items with one of eight. Where fees make up most of the costs, the mixture is
worth several percent more than any real choice, so its bound is loose. For a fixed number n the bound
L_n(λ) = λΞ + Σ of the n largest max_o [value − λ·cost] does not mix, and the largest L_n bounds the optimum.
"""

from dataclasses import dataclass, replace

import numpy as np

from vefl_sim.core.arrays import Ints
from vefl_sim.optimize.exchange import exchange
from vefl_sim.optimize.knapsack import Choice, Knapsack, Losses, chosen, lagrangian, losses, profits

ROUNDING_MARGIN = 1e-9  # relative to the bound: added to a gap, so that rounding excludes no choice of equal value


@dataclass(frozen=True)
class Reduced:
    """The rows and options that a choice better than the best one found can still contain."""

    original: Knapsack
    rows: Ints  # rows of `original` that remain
    first: int  # column of `original` that is column 0 here
    knapsack: Knapsack

    def expanded(self, choice: Choice) -> Choice:
        """A choice of the reduced knapsack, in rows and columns of the original one."""
        taken, option = np.zeros(len(self.original.value), np.bool_), np.zeros(len(self.original.value), np.int64)
        taken[self.rows], option[self.rows] = choice.taken, choice.option + self.first
        return chosen(self.original, taken, option).bounded(choice.bound, choice.price)

    def restricted(self, choice: Choice) -> Choice:
        """A choice of the original knapsack, in rows and columns of the reduced one, which has every row it takes."""
        option = np.where(choice.taken, choice.option - self.first, 0)[self.rows]
        return replace(choice, taken=choice.taken[self.rows], option=option)


@dataclass(frozen=True)
class CardinalityCase:
    """A knapsack, usually with exactly n items, and the best choice found for it, with its bound."""

    knapsack: Knapsack
    choice: Choice


@dataclass(frozen=True)
class Search:
    """The best choice found, with its bound, and the cases in which a better one is still possible."""

    choice: Choice
    reduced: Reduced | None = None  # the knapsack whose rows and columns the `cases` use
    cases: tuple[CardinalityCase, ...] = ()


def search(knapsack: Knapsack, *, fees: bool = True) -> Search:
    """Relax and exchange; if a gap remains and the items have fees, do the same for each number of items."""
    choice = lagrangian(knapsack)
    assert choice is not None, "the empty choice always fits the budget"
    if not choice.taken.any():
        return Search(choice.bounded(0.0, 0.0))  # no option fits the budget
    if choice.proved:
        return Search(choice)
    loss = losses(knapsack, choice.price)
    choice = exchange(knapsack, choice, loss)
    return by_count(knapsack, choice, loss) if fees and not choice.proved else Search(choice)


def by_count(knapsack: Knapsack, choice: Choice, loss: Losses) -> Search:
    """Improve a choice and its bound by solving each number of items separately."""
    remaining = reduced(knapsack, choice, loss)
    open_cases = cases(remaining.knapsack, remaining.restricted(choice))
    best = max((case.choice for case in open_cases), key=lambda other: other.value, default=choice)
    bound = max((case.choice.bound for case in open_cases), default=choice.value)
    if best.value > choice.value:
        choice = remaining.expanded(best).bounded(choice.bound, choice.price)
    choice = choice.bounded(min(max(bound, choice.value), choice.bound), choice.price)
    return Search(choice, remaining, tuple(open_cases))


def single_case(knapsack: Knapsack, choice: Choice) -> Search:
    """A search result with a single case that covers all numbers of items."""
    remaining = reduced(knapsack, choice, losses(knapsack, choice.price))
    return Search(choice, remaining, (CardinalityCase(remaining.knapsack, remaining.restricted(choice)),))


def reduced(knapsack: Knapsack, choice: Choice, loss: Losses) -> Reduced:
    """The knapsack without the options whose forced bound, L − loss, does not exceed the value found."""
    keep = loss.inside <= gap(choice)
    keep &= knapsack.cost <= knapsack.budget
    rows, columns = np.flatnonzero(keep.any(axis=1)), np.flatnonzero(keep.any(axis=0))
    window = slice(columns[0], columns[-1] + 1)
    cost = np.where(keep, knapsack.cost, np.inf)[rows, window]
    smaller = Knapsack(knapsack.value[rows, window], cost, knapsack.budget, knapsack.most_items)
    return Reduced(knapsack, rows, int(columns[0]), smaller)


def gap(choice: Choice) -> float:
    """Bound − value, plus a margin for rounding."""
    return choice.bound - choice.value + ROUNDING_MARGIN * abs(choice.bound)


def cases(knapsack: Knapsack, choice: Choice) -> list[CardinalityCase]:
    """The cases, one per number of items, that could beat the choice, in descending order of their bounds."""
    profit = -np.sort(-profits(knapsack, choice.price).max(axis=1))
    bounds = choice.price * knapsack.budget + np.cumsum(profit[: knapsack.most_items])  # L_n(λ)
    # If only one L_n reaches the bound, λ is the best price for that number of items, too.
    unmixed = np.count_nonzero(bounds >= choice.bound - ROUNDING_MARGIN * choice.bound) == 1
    open_cases: list[CardinalityCase] = []
    floor = choice.value
    for index in np.argsort(-bounds, kind="stable"):
        if bounds[index] <= floor:
            break
        fixed_count = Knapsack(knapsack.value, knapsack.cost, knapsack.budget, int(index) + 1, exactly=True)
        best = choice if unmixed and not open_cases else _best_of(fixed_count, floor)
        if best is not None:
            open_cases.append(CardinalityCase(fixed_count, best))
            floor = max(floor, best.value)
    return open_cases


def _best_of(fixed_count: Knapsack, floor: float) -> Choice | None:
    """The best choice found for one number of items; None if no choice can be worth more than `floor`."""
    relaxed = lagrangian(fixed_count, floor)
    if relaxed is None or relaxed.proved:
        return relaxed
    return exchange(fixed_count, relaxed, losses(fixed_count, relaxed.price))
