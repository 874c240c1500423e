"""A knapsack whose items have fees, one case per number of items.

The relaxation may mix a choice of seven items with one of eight; with fees that make up most of a cost, that mixture
is worth percents more than any choice. For a given number n the bound
L_n(λ) = λΞ + Σ of the n largest max_o [value − λ·cost] does not mix, and the largest L_n bounds the optimum.
"""

from dataclasses import dataclass, replace

import numpy as np

from vefl_sim.core.arrays import Ints
from vefl_sim.optimize.exchange import exchange
from vefl_sim.optimize.knapsack import Choice, Knapsack, Losses, chosen, lagrangian, losses

SLIVER = 1e-9  # of the bound: added to a gap, so that rounding drops nothing that is worth as much


@dataclass(frozen=True)
class Reduced:
    """What can still be in a choice worth more than the one found: fewer rows, fewer options."""

    whole: Knapsack
    rows: Ints
    first: int  # column of `whole` that is column 0 here
    knapsack: Knapsack

    def expanded(self, choice: Choice) -> Choice:
        """The same choice among all rows."""
        taken, option = np.zeros(len(self.whole.value), np.bool_), np.zeros(len(self.whole.value), np.int64)
        taken[self.rows], option[self.rows] = choice.taken, choice.option + self.first
        return chosen(self.whole, taken, option).bounded(choice.bound, choice.price)

    def restricted(self, choice: Choice) -> Choice:
        """The same choice among the rows that are left, which include all that are taken."""
        option = np.where(choice.taken, choice.option - self.first, 0)[self.rows]
        return replace(choice, taken=choice.taken[self.rows], option=option)


@dataclass(frozen=True)
class CardinalityCase:
    """The knapsack, mostly with exactly n items, and the best choice found for it with its bound."""

    knapsack: Knapsack
    choice: Choice


@dataclass(frozen=True)
class Search:
    """The best choice found, with its bound; and in which cases a better one would have to be."""

    choice: Choice
    reduced: Reduced | None = None  # the rows and options that `cases` are about
    cases: tuple[CardinalityCase, ...] = ()


def search(knapsack: Knapsack, *, fees: bool = True) -> Search:
    """Relax, exchange, and where that leaves a gap and items have fees, the same for each number of items."""
    whole = lagrangian(knapsack)
    assert whole is not None, "taking nothing is a choice"
    if not whole.taken.any():
        return Search(whole.bounded(0.0, 0.0))  # no option fits the budget
    if whole.proved:
        return Search(whole)
    loss = losses(knapsack, whole.price)
    whole = exchange(knapsack, whole, loss)
    return by_count(knapsack, whole, loss) if fees and not whole.proved else Search(whole)


def by_count(knapsack: Knapsack, whole: Choice, loss: Losses) -> Search:
    """Improve on a choice and its bound, one number of items after the other."""
    less = reduced(knapsack, whole, loss)
    found = cases(less.knapsack, less.restricted(whole))
    best = max((case.choice for case in found), key=lambda choice: choice.value, default=whole)
    bound = max((case.choice.bound for case in found), default=whole.value)
    if best.value > whole.value:
        whole = less.expanded(best).bounded(whole.bound, whole.price)
    return Search(whole.bounded(min(max(bound, whole.value), whole.bound), whole.price), less, tuple(found))


def undivided(knapsack: Knapsack, whole: Choice) -> Search:
    """The same search with a single case, whatever the number of items."""
    less = reduced(knapsack, whole, losses(knapsack, whole.price))
    return Search(whole, less, (CardinalityCase(less.knapsack, less.restricted(whole)),))


def reduced(knapsack: Knapsack, choice: Choice, loss: Losses) -> Reduced:
    """Drop every option whose forced bound, L − loss, does not exceed the value found."""
    keep = loss.inside <= gap(choice)
    keep &= knapsack.cost <= knapsack.budget
    rows, columns = np.flatnonzero(keep.any(axis=1)), np.flatnonzero(keep.any(axis=0))
    window = slice(columns[0], columns[-1] + 1)
    cost = np.where(keep, knapsack.cost, np.inf)[rows, window]
    less = Knapsack(knapsack.value[rows, window], cost, knapsack.budget, knapsack.most_items)
    return Reduced(knapsack, rows, int(columns[0]), less)


def gap(choice: Choice) -> float:
    """Bound − value, and a little for rounding."""
    return choice.bound - choice.value + SLIVER * abs(choice.bound)


def cases(knapsack: Knapsack, choice: Choice) -> list[CardinalityCase]:
    """The numbers of items for which something better than the choice is possible, the most promising first."""
    profit = -np.sort(-(knapsack.value - choice.price * knapsack.cost).max(axis=1))
    bounds = choice.price * knapsack.budget + np.cumsum(profit[: knapsack.most_items])  # L_n(λ)
    unmixed = np.count_nonzero(bounds >= choice.bound - SLIVER * choice.bound) == 1  # then λ is the best for it, too
    found: list[CardinalityCase] = []
    floor = choice.value
    for index in np.argsort(-bounds, kind="stable"):
        if bounds[index] <= floor:
            break
        of_count = Knapsack(knapsack.value, knapsack.cost, knapsack.budget, int(index) + 1, exactly=True)
        best = choice if unmixed and not found else _best_of(of_count, floor)
        if best is not None:
            found.append(CardinalityCase(of_count, best))
            floor = max(floor, best.value)
    return found


def _best_of(of_count: Knapsack, floor: float) -> Choice | None:
    """The best found for one number of items; None if none can be worth more than the floor."""
    relaxed = lagrangian(of_count, floor)
    if relaxed is None or relaxed.proved:
        return relaxed
    return exchange(of_count, relaxed, losses(of_count, relaxed.price))
