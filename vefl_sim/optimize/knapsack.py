"""A knapsack with several options per item and a limit on the number of items, solved by Lagrangian relaxation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.errors import RunFailed

Flags = NDArray[np.bool_]

MOST_PRICES = 1000  # each price finds a new corner of the convex L(λ), and a few dozen suffice for any number of items


@dataclass(frozen=True)
class Knapsack:
    """Take at most (or `exactly`) `most_items` rows, one option (column) each, with total cost within the budget."""

    value: Floats  # shape (items, options)
    cost: Floats  # infinite where an option is not allowed
    budget: float
    most_items: int
    exactly: bool = False


@dataclass(frozen=True)
class Choice:
    """The items taken, with one option each; no choice is worth more than `bound`, which was found at the price λ."""

    taken: Flags  # shape (items,)
    option: Ints  # column of the option; has a meaning only where `taken`
    value: float
    cost: float
    bound: float = np.inf
    price: float = 0.0

    def bounded(self, bound: float, price: float) -> "Choice":
        """The same choice with another bound, found at another price."""
        return Choice(self.taken, self.option, self.value, self.cost, bound, price)

    @property
    def proved(self) -> bool:
        """Whether the choice is optimal: its value reaches the bound, up to rounding."""
        return self.value >= self.bound * (1 - 1e-12)


@dataclass(frozen=True)
class Losses:
    """How far the bound L(λ) falls if one decision is forced: a choice worth more than L − loss cannot contain it."""

    inside: Floats  # shape (items, options): if this option is taken; infinite where it is not allowed
    outside: Floats  # shape (items,): if the item is not taken


def lagrangian(knapsack: Knapsack, floor: float = -np.inf) -> Choice | None:
    """Find the price λ at which demand just fits the budget; returns a choice within the budget, with the least bound.

    For every λ ≥ 0, L(λ) = λΞ + Σ of the N largest max(0, max_o [value − λ·cost]) bounds the optimum (without the
    max(0, ·) if exactly N are taken). Two choices, one over and one within the budget, give the next λ as the slope
    between them (secant), until no choice lies above that line, or one of them is found again, because λ cannot be
    finer: then L is at its minimum. A choice at λ ≈ 0 that fits is optimal. None if no choice within the budget is
    worth more than `floor`.
    """
    over = least = _demand(knapsack, _tie_breaking_price(knapsack))
    if over.cost <= knapsack.budget:
        return over
    start = within = _start(knapsack)
    if start.cost > knapsack.budget:
        return None
    for _ in range(MOST_PRICES):
        if not least.bound > floor:
            return None
        price = (over.value - within.value) / (over.cost - within.cost)
        demand = _demand(knapsack, price)
        least = demand if demand.bound < least.bound else least
        line = within.value - price * within.cost + 1e-12 * abs(over.value)
        if demand.value - price * demand.cost <= line or demand.cost in (over.cost, within.cost):
            # `within` may be the empty choice, which is worth less than the single item of `start`.
            best = within if within.value >= start.value else start
            return best.bounded(least.bound, least.price)
        over, within = (demand, within) if demand.cost > knapsack.budget else (over, demand)
    raise RunFailed("The prices of the VEFL sub-problem do not converge: a value or a cost is not a number.")


def losses(knapsack: Knapsack, price: float) -> Losses:
    """The loss of each decision at this price: L(λ) minus the same sum with the decision forced."""
    profit = profits(knapsack, price)
    best = profit.max(axis=1) if knapsack.exactly else np.maximum(profit.max(axis=1), 0)
    order = np.argsort(-best, kind="stable")
    padding = np.full(knapsack.most_items + 1, -np.inf if knapsack.exactly else 0.0)
    ranked = np.append(best[order], padding)
    last_in, first_out = ranked[knapsack.most_items - 1], ranked[knapsack.most_items]
    among_best = np.zeros(len(best), np.bool_)
    among_best[order[: knapsack.most_items]] = True
    return Losses(np.where(among_best, best, last_in)[:, None] - profit, np.where(among_best, best - first_out, 0.0))


def chosen(knapsack: Knapsack, taken: Flags, option: Ints) -> Choice:
    """The choice of these items and options, with its value and cost."""
    return _summed(knapsack, taken, option, np.inf, 0.0)


def _summed(knapsack: Knapsack, taken: Flags, option: Ints, bound: float, price: float) -> Choice:
    rows = taken.nonzero()[0]
    columns = option[rows]
    value, cost = knapsack.value[rows, columns], knapsack.cost[rows, columns]
    return Choice(taken, option, float(value.sum()), float(cost.sum()), bound, price)


def _tie_breaking_price(knapsack: Knapsack) -> float:
    """A price that changes the bound by no more than rounding, but prefers the cheaper of two equal options.

    An option that exceeds the budget does not count, however much it is worth: the price would exclude all others.
    """
    largest = np.max(knapsack.value, where=knapsack.cost <= knapsack.budget, initial=0.0)
    return float(1e-13 * largest / max(knapsack.budget, 1e-9))


def profits(knapsack: Knapsack, price: float) -> Floats:
    """value − λ·cost of every option, shape (items, options); −∞ where an option is not allowed, also at λ = 0."""
    if price > 0:
        return knapsack.value - price * knapsack.cost
    return np.where(np.isfinite(knapsack.cost), knapsack.value, -np.inf)


def _demand(knapsack: Knapsack, price: float) -> Choice:
    """The best choice if each unit of cost is charged `price` and the budget is ignored; its bound is L(price)."""
    profit = profits(knapsack, price)
    option = profit.argmax(axis=1)
    best = profit[np.arange(len(option)), option]
    ranked = (-best).argsort(kind="stable")[: knapsack.most_items]
    if not knapsack.exactly:
        ranked = ranked[best[ranked] > 0]
    taken = np.zeros(len(option), np.bool_)
    taken[ranked] = True
    return _summed(knapsack, taken, option, price * knapsack.budget + float(best[ranked].sum()), price)


def _start(knapsack: Knapsack) -> Choice:
    """The cheapest choice if the number of items is fixed, else the best single item within the budget."""
    taken = np.zeros(len(knapsack.cost), np.bool_)
    if knapsack.exactly:
        option = knapsack.cost.argmin(axis=1)
        taken[np.argsort(knapsack.cost.min(axis=1), kind="stable")[: knapsack.most_items]] = True
        return chosen(knapsack, taken, option)
    value = np.where(knapsack.cost <= knapsack.budget, knapsack.value, 0.0)
    option, item = value.argmax(axis=1), int(value.max(axis=1).argmax())
    taken[item] = value[item].max() > 0
    return chosen(knapsack, taken, option)
