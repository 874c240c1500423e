"""A knapsack with several options per item and a limit on the number of items, solved by Lagrangian relaxation.

A choice that leaves part of the budget unspent is improved by changing two decisions at a time while the value grows
(`exchange`). If the items have fees, each number of items is solved separately (`search`): the relaxation may mix a
choice of seven items with one of eight, and where fees make up most of the costs, the mixture is worth several percent
more than any real choice, so its bound is loose. For a fixed number n the bound
L_n(λ) = λΞ + Σ of the n largest max_o [value − λ·cost] does not mix, and the largest L_n bounds the optimum.

`exact` closes the gap that remains: it drops the options that the bound excludes, and solves the rest as a
mixed-integer linear programme with HiGHS.
"""

from dataclasses import dataclass, replace

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
        return replace(self, bound=bound, price=price)

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


def chosen(knapsack: Knapsack, taken: Flags, option: Ints, bound: float = np.inf, price: float = 0.0) -> Choice:
    """The choice of these items and options, with its value and cost."""
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
    return chosen(knapsack, taken, option, price * knapsack.budget + float(best[ranked].sum()), price)


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


CORE = 240  # largest number of decisions considered: those with the smallest losses


def exchange(knapsack: Knapsack, choice: Choice, loss: Losses) -> Choice:
    """Apply the best pair of moves (add, drop, swap, one item up and another down) until no pair gains.

    A decision whose loss exceeds bound − value cannot be part of a better choice and is not considered.
    """
    if choice.proved:
        return choice
    all_losses = np.column_stack([loss.inside, loss.outside]).ravel()
    core = np.flatnonzero(all_losses < choice.bound - choice.value)
    if len(core) > CORE:
        core = core[np.argpartition(all_losses[core], CORE)[:CORE]]
    while (better := _improved(knapsack, choice, core)) is not None:
        choice = better.bounded(choice.bound, choice.price)
        if choice.proved:
            break
        core = core[all_losses[core] < choice.bound - choice.value]
    return choice


def _improved(knapsack: Knapsack, choice: Choice, core: Ints) -> Choice | None:
    """The choice after the best pair of moves of different items; None if no pair gains.

    A move gives an item another option, or leaves the item out (then its column is the number of options). One move of
    a pair adds value, the other pays for it. Move 0 changes nothing, so that a pair can also be a single move.
    """
    options = knapsack.value.shape[1]
    item, column = np.divmod(core, options + 1)
    inside, safe_column = column < options, np.minimum(column, options - 1)
    taken, present = choice.taken[item], choice.option[item]
    value, cost = (
        np.append(0.0, np.where(inside, table[item, safe_column], 0.0) - np.where(taken, table[item, present], 0.0))
        for table in (knapsack.value, knapsack.cost)
    )
    count = np.append(0, inside.astype(np.int64) - taken)  # change of the number of items: −1, 0 or 1
    item, column = np.append(-1, item), np.append(-1, column)
    up, down = np.flatnonzero(value > 0), np.flatnonzero(value <= 0)
    if not len(up):
        return None
    allowed = np.add.outer(cost[up], cost[down]) <= knapsack.budget - choice.cost
    allowed &= np.add.outer(count[up], count[down]) <= knapsack.most_items - int(choice.taken.sum())
    allowed &= np.not_equal.outer(item[up], item[down])
    gain = np.where(allowed, np.add.outer(value[up], value[down]), 0.0)
    first, second = divmod(int(gain.argmax()), len(down))
    if not gain[first, second] > 0:
        return None
    now_taken, option = choice.taken.copy(), choice.option.copy()
    for move in (up[first], down[second]):
        if move > 0:
            now_taken[item[move]] = column[move] < options
            option[item[move]] = column[move] if column[move] < options else option[item[move]]
    better = chosen(knapsack, now_taken, option)
    return better if better.value > choice.value * (1 + 1e-12) else None


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


Case = tuple[Knapsack, Choice]
"""A knapsack, usually with exactly n items, and the best choice found for it, with its bound."""


@dataclass(frozen=True)
class Search:
    """The best choice found, with its bound, and the cases in which a better one is still possible."""

    choice: Choice
    reduced: Reduced | None = None  # the knapsack whose rows and columns the `cases` use
    cases: tuple[Case, ...] = ()


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
    best = max((found for _, found in open_cases), key=lambda other: other.value, default=choice)
    bound = max((found.bound for _, found in open_cases), default=choice.value)
    if best.value > choice.value:
        choice = remaining.expanded(best).bounded(choice.bound, choice.price)
    choice = choice.bounded(min(max(bound, choice.value), choice.bound), choice.price)
    return Search(choice, remaining, tuple(open_cases))


def reduced(knapsack: Knapsack, choice: Choice, loss: Losses) -> Reduced:
    """The knapsack without the options whose forced bound, L − loss, does not exceed the value found."""
    gap = choice.bound - choice.value + ROUNDING_MARGIN * abs(choice.bound)
    keep = (loss.inside <= gap) & (knapsack.cost <= knapsack.budget)
    rows, columns = np.flatnonzero(keep.any(axis=1)), np.flatnonzero(keep.any(axis=0))
    window = slice(columns[0], columns[-1] + 1)
    cost = np.where(keep, knapsack.cost, np.inf)[rows, window]
    smaller = Knapsack(knapsack.value[rows, window], cost, knapsack.budget, knapsack.most_items)
    return Reduced(knapsack, rows, int(columns[0]), smaller)


def cases(knapsack: Knapsack, choice: Choice) -> list[Case]:
    """The cases, one per number of items, that could beat the choice, in descending order of their bounds."""
    profit = -np.sort(-profits(knapsack, choice.price).max(axis=1))
    bounds = choice.price * knapsack.budget + np.cumsum(profit[: knapsack.most_items])  # L_n(λ)
    # If only one L_n reaches the bound, λ is the best price for that number of items, too.
    unmixed = np.count_nonzero(bounds >= choice.bound - ROUNDING_MARGIN * choice.bound) == 1
    open_cases, floor = list[Case](), choice.value
    for index in np.argsort(-bounds, kind="stable"):
        if bounds[index] <= floor:
            break
        fixed_count = Knapsack(knapsack.value, knapsack.cost, knapsack.budget, int(index) + 1, exactly=True)
        best = choice if unmixed and not open_cases else lagrangian(fixed_count, floor)
        if best is not None:  # a choice can be worth more than `floor`
            if best is not choice and not best.proved:
                best = exchange(fixed_count, best, losses(fixed_count, best.price))
            open_cases.append((fixed_count, best))
            floor = max(floor, best.value)
    return open_cases


ROUNDING = 1e-12  # relative: by how much a choice may exceed the budget; HiGHS by itself allows more
SCALE = 1e4  # bound and budget are scaled to this for HiGHS, whose tolerances, near 1e-6, are absolute
OPTIMAL, INFEASIBLE = 0, 2  # statuses of scipy.optimize.milp


def exact(knapsack: Knapsack, searched: Search) -> Choice:
    """The optimum, from one MILP for each number of items that could still give a better choice.

    If HiGHS gives up on a case, the bound of that case is kept, and a gap remains.
    """
    if searched.choice.proved:
        return searched.choice
    best, bound, remaining, open_cases = searched.choice, searched.choice.value, searched.reduced, searched.cases
    if remaining is None:
        remaining = reduced(knapsack, best, losses(knapsack, best.price))
        open_cases = ((remaining.knapsack, remaining.restricted(best)),)
    for fixed_count, found in open_cases:
        if found.bound > best.value:
            better, proved = solve_case(fixed_count, found, best.value)
            if better is not None and better.value > best.value:
                best = replace(remaining.expanded(better), price=best.price)
            if not proved:
                bound = max(bound, found.bound)
    return replace(best, bound=max(bound, best.value))


def solve_case(knapsack: Knapsack, found: Choice, least: float) -> tuple[Choice | None, bool]:
    """The best choice of a case if it is worth more than `least`, and whether that is proved.

    Maximises Σ value·x over binary x with HiGHS: one option per item, n items, within the budget. Only pairs of item
    and option whose forced bound, L_n − loss, exceeds `least` count. HiGHS accepts a choice that exceeds the budget by
    a millionth. Such a choice is a cover: these options, or dearer ones of the same items, never fit all together. It
    is excluded by the cut Σ x ≤ |cover| − 1, and HiGHS is run again, until its answer is within the budget.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import
    from scipy.sparse import csr_array

    loss, most = losses(knapsack, found.price), knapsack.most_items
    slack = found.bound - least + ROUNDING_MARGIN * found.bound
    item, column = np.nonzero((loss.inside <= slack) & (knapsack.cost <= knapsack.budget))
    value, cost, items, count = knapsack.value[item, column], knapsack.cost[item, column], len(loss.outside), len(item)
    pick = csr_array((np.ones(count), (item, np.arange(count))), shape=(items, count))
    limits = [
        LinearConstraint(pick, (loss.outside > slack).astype(np.float64), 1),
        LinearConstraint(np.ones((1, count)), most if knapsack.exactly else 0, most),
        LinearConstraint(cost[None] * SCALE / max(knapsack.budget, 1e-300), 0, SCALE),
    ]
    while count:
        result = milp(
            -value * SCALE / (value.max() * most),
            integrality=np.ones(count, np.int64),
            bounds=Bounds(0, 1),
            constraints=limits,
            options={"mip_rel_gap": 0.0},
        )
        if result.status != OPTIMAL:
            return None, result.status == INFEASIBLE
        mask: Flags = np.asarray(result.x) > 0.5
        taken, option, cheapest = np.zeros(items, np.bool_), np.zeros(items, np.int64), np.full(items, np.inf)
        taken[item[mask]], option[item[mask]], cheapest[item[mask]] = True, column[mask], cost[mask]
        best = chosen(knapsack, taken, option)
        if best.cost <= knapsack.budget * (1 + ROUNDING):
            return best, True
        cover = (cost >= cheapest[item]).astype(np.float64)
        limits.append(LinearConstraint(cover[None], 0, int(mask.sum()) - 1))
    return None, True
