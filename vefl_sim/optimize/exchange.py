"""Improve a choice that leaves part of the budget unspent: change two decisions at a time while the value grows."""

from dataclasses import dataclass

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.optimize.knapsack import Choice, Flags, Knapsack, Losses, chosen

CORE = 240  # largest number of decisions considered: those with the smallest losses


@dataclass(frozen=True)
class Moves:
    """Possible changes of a choice: `item` gets option `column`, or is left out if there is no such option.

    Row 0 changes nothing, so that a pair of moves can also be a single move.
    """

    item: Ints
    column: Ints
    value: Floats  # change of the total value
    cost: Floats  # change of the total cost
    count: Ints  # change of the number of items: −1, 0 or 1

    def best_pair(self, slack: float, room: int) -> tuple[int, int] | None:
        """The two moves of different items, one that adds value and one that pays for it, with the largest gain.

        `slack` is the unspent budget, `room` the number of items that may be added. None if no pair gains.
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


def exchange(knapsack: Knapsack, choice: Choice, loss: Losses) -> Choice:
    """Apply the best pair of moves (add, drop, swap, one item up and another down) until no pair gains.

    A decision whose loss exceeds bound − value cannot be part of a better choice and is not considered.
    """
    if choice.proved:
        return choice
    all_losses = np.column_stack([loss.inside, loss.outside]).ravel()
    core = _core(all_losses, choice)
    while (better := _improved(knapsack, choice, core)) is not None:
        choice = better.bounded(choice.bound, choice.price)
        if choice.proved:
            break
        core = core[all_losses[core] < choice.bound - choice.value]
    return choice


def _improved(knapsack: Knapsack, choice: Choice, core: Ints) -> Choice | None:
    moves = _moves(knapsack, choice, core)
    pair = moves.best_pair(knapsack.budget - choice.cost, knapsack.most_items - int(choice.taken.sum()))
    if pair is None:
        return None
    taken, option = choice.taken.copy(), choice.option.copy()
    for move in pair:
        if move > 0:
            _apply(moves, move, taken, option, knapsack.value.shape[1])
    better = chosen(knapsack, taken, option)
    return better if better.value > choice.value * (1 + 1e-12) else None


def _apply(moves: Moves, move: int, taken: Flags, option: Ints, options: int) -> None:
    item, column = moves.item[move], moves.column[move]
    taken[item] = column < options
    if column < options:
        option[item] = column


def _core(loss: Floats, choice: Choice) -> Ints:
    """Positions of the decisions whose loss is below bound − value, at most CORE of them."""
    core = np.flatnonzero(loss < choice.bound - choice.value)
    return core if len(core) <= CORE else core[np.argpartition(loss[core], CORE)[:CORE]]


def _moves(knapsack: Knapsack, choice: Choice, core: Ints) -> Moves:
    value, cost, options = knapsack.value, knapsack.cost, knapsack.value.shape[1]
    item, column = np.divmod(core, options + 1)
    inside, safe_column = column < options, np.minimum(column, options - 1)
    taken, present = choice.taken[item], choice.option[item]
    added_value = np.where(inside, value[item, safe_column], 0.0) - np.where(taken, value[item, present], 0.0)
    added_cost = np.where(inside, cost[item, safe_column], 0.0) - np.where(taken, cost[item, present], 0.0)
    return Moves(
        item=np.concatenate(([-1], item)),
        column=np.concatenate(([-1], column)),
        value=np.concatenate(([0.0], added_value)),
        cost=np.concatenate(([0.0], added_cost)),
        count=np.concatenate(([0], inside.astype(np.int64) - taken)),
    )
