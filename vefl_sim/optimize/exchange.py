"""Spending what the Lagrangian leaves of a budget: change two decisions at a time while that pays."""

from dataclasses import dataclass, replace

import numpy as np

from vefl_sim.optimize.knapsack import Choice, Flags, Floats, Ints, Knapsack, chosen, losses

CORE = 240  # decisions looked at, those that cost the bound least


@dataclass(frozen=True)
class Moves:
    """Decisions that could replace an item's present one; a column beyond the options means: leave it out.

    Row 0 changes nothing, so that pairs include single moves.
    """

    item: Ints
    column: Ints
    value: Floats  # gained
    cost: Floats  # added
    count: Ints  # items added: −1, 0 or 1

    def best_pair(self, slack: float, room: int) -> tuple[int, int] | None:
        """A move up and one that pays for it, of different items: the pair that gains most within the money and places
        left; None if none gains.
        """
        up, down = np.flatnonzero(self.value > 0), np.flatnonzero(self.value <= 0)
        if not len(up):
            return None
        allowed = np.add.outer(self.cost[up], self.cost[down]) <= slack
        allowed &= np.add.outer(self.count[up], self.count[down]) <= room
        allowed &= np.not_equal.outer(self.item[up], self.item[down])
        gain = np.where(allowed, np.add.outer(self.value[up], self.value[down]), 0.0)
        first, second = divmod(int(gain.argmax()), len(down))
        return (int(up[first]), int(down[second])) if gain[first, second] > 0 else None


def exchange(knapsack: Knapsack, choice: Choice) -> Choice:
    """The best pair of moves (add, drop, swap, one item up and another down) until none gains.

    A decision whose loss exceeds bound − value cannot be part of anything better and is not looked at.
    """
    loss = losses(knapsack, choice.price)
    every = np.column_stack([loss.inside, loss.outside])
    while not choice.proved:
        better = _improved(knapsack, choice, every)
        if better is None or better.value <= choice.value * (1 + 1e-12):
            break
        choice = replace(better, bound=choice.bound, price=choice.price)
    return choice


def _improved(knapsack: Knapsack, choice: Choice, loss: Floats) -> Choice | None:
    moves = _moves(knapsack, choice, _core(loss, choice.bound - choice.value))
    pair = moves.best_pair(knapsack.budget - choice.cost, knapsack.most_items - int(choice.taken.sum()))
    if pair is None:
        return None
    taken, option = choice.taken.copy(), choice.option.copy()
    for move in pair:
        if move > 0:
            _apply(moves, move, taken, option, knapsack.value.shape[1])
    return chosen(knapsack, taken, option)


def _apply(moves: Moves, move: int, taken: Flags, option: Ints, options: int) -> None:
    item, column = moves.item[move], moves.column[move]
    taken[item] = column < options
    if column < options:
        option[item] = column


def _core(loss: Floats, most: float) -> Ints:
    """Flat positions of the decisions that lose less than `most`, at most CORE of them."""
    flat = loss.ravel()
    core = np.flatnonzero(flat < most)
    return core if len(core) <= CORE else core[np.argpartition(flat[core], CORE)[:CORE]]


def _moves(knapsack: Knapsack, choice: Choice, core: Ints) -> Moves:
    items, options = knapsack.value.shape
    item, column = np.divmod(core, options + 1)
    rows = np.arange(items)
    worth = np.where(choice.taken, knapsack.value[rows, choice.option], 0.0)
    paid = np.where(choice.taken, knapsack.cost[rows, choice.option], 0.0)
    inside, at = column < options, np.minimum(column, options - 1)
    return Moves(
        item=np.append(-1, item),
        column=np.append(-1, column),
        value=np.append(0.0, np.where(inside, knapsack.value[item, at], 0.0) - worth[item]),
        cost=np.append(0.0, np.where(inside, knapsack.cost[item, at], 0.0) - paid[item]),
        count=np.append(0, inside.astype(np.int64) - choice.taken[item]),
    )
