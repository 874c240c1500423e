"""Which swept key matters more: main effects, interactions, and the share of the variance of each.

The numbers of a full factorial, one per combination of levels and seed, are split as in an analysis of variance in
which the seeds are blocks: the mean, each factor, each combination of factors, the seeds, and a rest, which is how
much effects differ between seeds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import BadInput
from vefl_sim.sweep.paired import half_width

SEEDS, REST = "seeds", "rest"
_ROUNDING = 1e-12  # a difference below this part of the largest number is a rounding error
_COLUMNS = ("effect", "change", "seeds", "difference", "half_width", "differs")


@dataclass(frozen=True)
class Factor:
    """What a sweep varies: the variants, or a swept key."""

    name: str
    levels: tuple[str, ...]  # its values in words
    values: tuple[Any, ...] = ()  # on an axis


@dataclass(frozen=True)
class Factorial:
    """One number for each combination of levels and each seed; none is missing."""

    factors: tuple[Factor, ...]
    seeds: tuple[Any, ...]
    values: Floats  # one axis per factor, then the seeds
    left_out: str = ""  # a sentence about levels and seeds that are not used

    @cached_property
    def shares(self) -> pd.DataFrame:
        """One row per effect, then the seeds and the rest: `df` degrees of freedom, `squares`, `share` of the total.

        The effect of some factors is what their means deviate by from the sum of the effects of fewer of them. The
        interactions of three or more factors are one row.
        """
        axes = range(len(self.factors))
        effects = [own for size in (1, 2) for own in combinations(axes, size)]
        rows = {self.name(own): (_squares(self.values, own), self._freedom(own)) for own in effects}
        if len(axes) > 2:
            cells = self.values.mean(axis=-1)
            between = len(self.seeds) * float(((cells - cells.mean()) ** 2).sum())
            squares, freedom = (sum(column) for column in zip(*rows.values(), strict=True))
            rows["three or more"] = max(0.0, between - squares), int(cells.size - 1 - freedom)
        rows[SEEDS] = _squares(self.values, (len(axes),)), len(self.seeds) - 1
        total = float(((self.values - self.values.mean()) ** 2).sum())
        squares, freedom = (sum(column) for column in zip(*rows.values(), strict=True))
        rows[REST] = max(0.0, total - squares), int(self.values.size - 1 - freedom)
        table = pd.DataFrame.from_dict(rows, orient="index", columns=["squares", "df"]).rename_axis("effect")
        return table.assign(share=table["squares"] / total if total else 0.0)[["df", "squares", "share"]]

    @cached_property
    def contrasts(self) -> pd.DataFrame:
        """Differences to the first level of each factor, and how a second factor changes them, in pairs of seeds.

        `difference`: mean over seeds, each the mean over all other factors; `half_width` of Student's 95 % confidence
        interval; `differs`: the interval excludes 0.
        """
        return pd.DataFrame([*self._main_effects(), *self._interactions()], columns=list(_COLUMNS))

    @property
    def strongest(self) -> tuple[int, int]:
        """The two factors with the largest shares, in the order of the sweep."""
        by_share = sorted(range(len(self.factors)), key=lambda axis: -_squares(self.values, (axis,)))
        first, second = sorted(by_share[:2])
        return first, second

    def means(self, first: int, second: int) -> Floats:
        """By seed, the means over all other factors: one row per level of `first`, one column per level of `second`."""
        others = tuple(axis for axis in range(len(self.factors)) if axis not in (first, second))
        table: Floats = self.values.mean(axis=others)
        return table if first < second else table.swapaxes(0, 1)

    def name(self, axes: Sequence[int]) -> str:
        """The name of an effect, for example "Z × |C_k|"."""
        return " × ".join(self.factors[axis].name for axis in axes)

    def _freedom(self, axes: Sequence[int]) -> int:
        return int(np.prod([self.values.shape[axis] - 1 for axis in axes]))

    def _main_effects(self) -> Iterator[dict[str, Any]]:
        for axis, factor in enumerate(self.factors):
            others = tuple(other for other in range(len(self.factors)) if other != axis)
            means = self.values.mean(axis=others)
            for level in range(1, len(factor.levels)):
                yield self._row(self.name([axis]), _change(factor, level), means[level] - means[0])

    def _interactions(self) -> Iterator[dict[str, Any]]:
        for first, second in combinations(range(len(self.factors)), 2):
            means = self.means(first, second)
            for i in range(1, means.shape[0]):
                for j in range(1, means.shape[1]):
                    change = f"{_change(self.factors[first], i)}; {_change(self.factors[second], j)}"
                    values = means[i, j] - means[i, 0] - means[0, j] + means[0, 0]
                    yield self._row(self.name([first, second]), change, values)

    def _row(self, effect: str, change: str, by_seed: Floats) -> dict[str, Any]:
        exact = np.where(np.abs(by_seed) <= _ROUNDING * np.abs(self.values).max(), 0.0, by_seed)
        mean, half = float(exact.mean()), half_width(pd.Series(exact))
        cells = (effect, change, len(self.seeds), mean, half, abs(mean) > half)
        return dict(zip(_COLUMNS, cells, strict=True))


def complete_factorial(factors: Sequence[Factor], seeds: Sequence[Any], values: Floats) -> Factorial:
    """The factorial without levels and seeds whose values are not all finite; raises BadInput if too little is left.

    Again and again the level or seed of which the largest part is missing is left out, until nothing is missing.
    """
    factors = _with_own_names(factors)
    names = [[f"{factor.name} = {level}" for level in factor.levels] for factor in factors]
    names.append([f"seed {seed}" for seed in seeds])
    kept = [list(range(length)) for length in values.shape]
    dropped: list[str] = []
    while (lacking := ~np.isfinite(values[np.ix_(*kept)])).any():
        axes = [axis for axis in range(lacking.ndim) if len(kept[axis]) > (2 if axis < len(factors) else 1)]
        parts = [(float(part), axis, place) for axis in axes for place, part in enumerate(_parts(lacking, axis))]
        part, axis, place = max(parts, default=(0.0, 0, 0))
        if not part:
            raise BadInput(_too_little(factors, seeds, values))
        dropped.append(names[axis][kept[axis].pop(place)])
    left = tuple(
        Factor(f.name, tuple(f.levels[i] for i in own), tuple(f.values[i] for i in own if f.values))
        for f, own in zip(factors, kept, strict=False)
    )
    sentence = f"Not used, because points are missing: {', '.join(dropped)}." if dropped else ""
    return Factorial(left, tuple(seeds[i] for i in kept[-1]), values[np.ix_(*kept)], sentence)


def _with_own_names(factors: Sequence[Factor]) -> list[Factor]:
    """The factors, where a name that an earlier one has, too, gets a number."""
    names = [factor.name for factor in factors]
    counts = [names[: place + 1].count(name) for place, name in enumerate(names)]
    return [
        replace(f, name=f"{f.name} ({count})" if count > 1 else f.name)
        for f, count in zip(factors, counts, strict=True)
    ]


def _parts(lacking: NDArray[np.bool_], axis: int) -> Floats:
    """The part of the values that is missing, at each place of an axis."""
    others = tuple(other for other in range(lacking.ndim) if other != axis)
    return np.asarray(lacking.mean(axis=others), float)


def _too_little(factors: Sequence[Factor], seeds: Sequence[Any], values: Floats) -> str:
    """A sentence about one of the missing points."""
    missing = ~np.isfinite(values)
    place = np.argwhere(missing)[0]
    where = [f"{factor.name} = {factor.levels[level]}" for factor, level in zip(factors, place, strict=False)]
    return (
        f"Effects need at least two values of each factor with all their combinations, but {missing.sum()} of "
        f"{values.size} points are missing, the first is {', '.join(where)}, seed {seeds[place[-1]]}: run them first."
    )


def _squares(values: Floats, axes: Sequence[int]) -> float:
    """The sum of squares of the effect of some axes, over all numbers."""
    effect: Any = 0.0
    for size in range(len(axes) + 1):
        for own in combinations(axes, size):
            others = tuple(axis for axis in range(values.ndim) if axis not in own)
            effect = effect + (-1) ** (len(axes) - size) * values.mean(axis=others, keepdims=True)
    return float((np.broadcast_to(effect, values.shape) ** 2).sum())


def _change(factor: Factor, level: int) -> str:
    return f"{factor.levels[0]} → {factor.levels[level]}"
