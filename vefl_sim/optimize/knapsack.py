"""A knapsack with several options per item and a limit on the number of items, by Lagrangian relaxation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Knapsack:
    """Take at most `most_items` rows, one option (column) each, with total cost within the budget."""

    value: Floats  # shape (items, options)
    cost: Floats  # infinite where an option is not allowed
    budget: float
    most_items: int


@dataclass(frozen=True)
class Choice:
    """What is taken; `bound` is an upper bound on what any choice could be worth."""

    taken: NDArray[np.bool_]  # shape (items,)
    option: NDArray[np.int64]  # column, meaningful where taken
    value: float
    cost: float
    bound: float


def lagrangian(knapsack: Knapsack) -> Choice:
    """Price the budget at λ so that demand just fits, then spend what is left greedily.

    For every λ ≥ 0, L(λ) = λΞ + Σ of the N largest max(0, max_o [value − λ·cost]) bounds the optimum. Two
    choices, one over and one within the budget, give the next λ as the slope between them (secant), until
    no choice lies above that line: then L is at its minimum. If λ ≈ 0 already fits, it is optimal.
    """
    over = _demand(knapsack, _tie_breaking_price(knapsack))
    if over.cost <= knapsack.budget:
        return _improved(knapsack, over)
    within, bound = _nothing(knapsack), over.bound
    while True:
        price = (over.value - within.value) / (over.cost - within.cost)
        demand = _demand(knapsack, price)
        bound = min(bound, demand.bound)
        line = within.value - price * within.cost
        if demand.value - price * demand.cost <= line + 1e-12 * abs(over.value):
            return _improved(knapsack, _with_bound(within, bound))
        if demand.cost > knapsack.budget:
            over = demand
        else:
            within = demand


def _tie_breaking_price(knapsack: Knapsack) -> float:
    """Small enough to move the bound by no more than rounding, positive so that the cheaper of equals wins."""
    return float(1e-13 * np.max(knapsack.value) / max(knapsack.budget, 1e-9))


def _demand(knapsack: Knapsack, price: float) -> Choice:
    """The best choice when each unit of cost is charged `price` and the budget is ignored."""
    profit = knapsack.value - price * knapsack.cost if price > 0 else knapsack.value
    profit = np.where(np.isfinite(knapsack.cost), profit, -np.inf)
    option = profit.argmax(axis=1)
    best = profit[np.arange(len(option)), option]
    taken = np.zeros(len(option), np.bool_)
    ranked = np.argsort(-best, kind="stable")[: knapsack.most_items]
    taken[ranked] = best[ranked] > 0
    bound = price * knapsack.budget + float(best[taken].sum())
    return _with_bound(_choice(knapsack, taken, option), bound)


def _improved(knapsack: Knapsack, choice: Choice) -> Choice:
    """Spend what is left: the most valuable change of one item (upgrade, addition or swap) until none helps."""
    while choice.value < choice.bound * (1 - 1e-12):
        better = _best_change(knapsack, choice)
        if better is None:
            break
        choice = _with_bound(better, choice.bound)
    return choice


def _best_change(knapsack: Knapsack, choice: Choice) -> Choice | None:
    """Give up one taken item (or, below the limit, nothing) for one option of any item not then taken."""
    paid, earned = _current(knapsack, choice)
    give_up: list[int | None] = list(np.flatnonzero(choice.taken))
    if choice.taken.sum() < knapsack.most_items:
        give_up.append(None)
    best_gain, best = 1e-12 * max(choice.value, 1e-300), None
    for item in give_up:
        slack = knapsack.budget - choice.cost + (0.0 if item is None else paid[item])
        lost = 0.0 if item is None else earned[item]
        free = ~choice.taken
        if item is not None:
            free[item] = True
        gain = np.where((knapsack.cost <= slack) & free[:, None], knapsack.value - lost, -np.inf)
        at = int(gain.argmax())
        if gain.flat[at] > best_gain:
            best_gain, best = float(gain.flat[at]), (item, *divmod(at, gain.shape[1]))
    return None if best is None else _changed(knapsack, choice, *best)


def _changed(knapsack: Knapsack, choice: Choice, out: int | None, item: int, option: int) -> Choice:
    taken, options = choice.taken.copy(), choice.option.copy()
    if out is not None:
        taken[out] = False
    taken[item], options[item] = True, option
    return _choice(knapsack, taken, options)


def _current(knapsack: Knapsack, choice: Choice) -> tuple[Floats, Floats]:
    rows = np.arange(len(choice.option))
    return knapsack.cost[rows, choice.option], knapsack.value[rows, choice.option]


def _choice(knapsack: Knapsack, taken: NDArray[np.bool_], option: NDArray[np.int64]) -> Choice:
    rows = np.flatnonzero(taken)
    value, cost = knapsack.value[rows, option[rows]], knapsack.cost[rows, option[rows]]
    return Choice(taken, option, float(value.sum()), float(cost.sum()), np.inf)


def _nothing(knapsack: Knapsack) -> Choice:
    items = len(knapsack.value)
    return _choice(knapsack, np.zeros(items, np.bool_), np.zeros(items, np.int64))


def _with_bound(choice: Choice, bound: float) -> Choice:
    return Choice(choice.taken, choice.option, choice.value, choice.cost, bound)
