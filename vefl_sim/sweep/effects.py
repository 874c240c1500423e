"""Which swept key matters more: main effects, interactions, and the share of the variance of each.

The numbers of a full factorial, one per combination of levels and seed, are split as in an analysis of variance in
which the seeds are blocks: the mean, each factor, each combination of factors, the seeds, and a rest, which is how
much effects differ between seeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import BadInput
from vefl_sim.sweep.paired import half_width

SEEDS, REST = "seeds", "rest"
_ROUNDING = 1e-12  # a difference below this part of the largest number is a rounding error


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
        rows = {self._name(own): (_squares(self.values, own), self._freedom(own)) for own in self._effects}
        if len(self.factors) > 2:
            cells = self.values.mean(axis=-1)
            between = len(self.seeds) * float(((cells - cells.mean()) ** 2).sum())
            squares, freedom = (sum(column) for column in zip(*rows.values(), strict=True))
            rows["three or more"] = max(0.0, between - squares), int(cells.size - 1 - freedom)
        rows[SEEDS] = _squares(self.values, (len(self.factors),)), len(self.seeds) - 1
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
        rows = []
        for own in self._effects:
            changed = self.means(*own)
            for axis in range(len(own)):
                changed = np.delete(changed, 0, axis) - changed.take([0], axis)
            exact = np.where(np.abs(changed) <= _ROUNDING * np.abs(self.values).max(), 0.0, changed)
            for place in np.ndindex(exact.shape[:-1]):
                levels = [self.factors[axis].levels for axis in own]
                change = "; ".join(f"{names[0]} → {names[1 + at]}" for names, at in zip(levels, place, strict=True))
                mean, half = float(exact[place].mean()), half_width(pd.Series(exact[place]))
                rows.append((self._name(own), change, len(self.seeds), mean, half, abs(mean) > half))
        return pd.DataFrame(rows, columns=["effect", "change", "seeds", "difference", "half_width", "differs"])

    @property
    def strongest(self) -> tuple[int, int]:
        """The two factors with the largest shares, in the order of the sweep."""
        squares = np.array([_squares(self.values, (axis,)) for axis in range(len(self.factors))])
        first, second = sorted(np.argsort(-squares, kind="stable")[:2].tolist())
        return first, second

    def means(self, *axes: int) -> Floats:
        """By seed, the means over all other factors: one axis per given factor, in this order, then the seeds."""
        others = tuple(axis for axis in range(len(self.factors)) if axis not in axes)
        table: Floats = self.values.mean(axis=others)
        return table if [*axes] == sorted(axes) else table.swapaxes(0, 1)

    @property
    def _effects(self) -> list[tuple[int, ...]]:
        """The axes of all single factors and of all pairs."""
        return [own for size in (1, 2) for own in combinations(range(len(self.factors)), size)]

    def _name(self, axes: Sequence[int]) -> str:
        """The name of an effect, for example "Z × |C_k|"."""
        return " × ".join(self.factors[axis].name for axis in axes)

    def _freedom(self, axes: Sequence[int]) -> int:
        return int(np.prod([self.values.shape[axis] - 1 for axis in axes]))


def complete_factorial(factors: Sequence[Factor], seeds: Sequence[Any], values: Floats) -> Factorial:
    """The factorial without levels and seeds whose values are not all finite; raises BadInput if too little is left.

    Again and again the level or seed of which the largest part is missing is left out, until nothing is missing.
    """
    named = [factor.name for factor in factors]
    counts = [named[: place + 1].count(name) for place, name in enumerate(named)]
    factors = [  # a name that an earlier factor has, too, gets a number
        replace(factor, name=f"{factor.name} ({count})") if count > 1 else factor
        for factor, count in zip(factors, counts, strict=True)
    ]
    names = [[f"{factor.name} = {level}" for level in factor.levels] for factor in factors]
    names.append([f"seed {seed}" for seed in seeds])
    kept = [list(range(length)) for length in values.shape]
    dropped: list[str] = []
    while (lacking := ~np.isfinite(values[np.ix_(*kept)])).any():
        axes = [axis for axis, own in enumerate(kept) if len(own) > (2 if axis < len(factors) else 1)]
        parts = [(float(lacking.take(at, axis).mean()), axis, at) for axis in axes for at in range(len(kept[axis]))]
        part, axis, place = max(parts, default=(0.0, 0, 0))
        if not part:
            missing = np.argwhere(~np.isfinite(values))
            where = ", ".join(own[at] for own, at in zip(names, missing[0], strict=True))
            raise BadInput(
                "Effects need at least two values of each factor with all their combinations, but "
                f"{len(missing)} of {values.size} points are missing, the first is {where}: run them first."
            )
        dropped.append(names[axis][kept[axis].pop(place)])
    left = tuple(
        Factor(f.name, tuple(f.levels[i] for i in own), tuple(f.values[i] for i in own if f.values))
        for f, own in zip(factors, kept, strict=False)
    )
    sentence = f"Not used, because points are missing: {', '.join(dropped)}." if dropped else ""
    return Factorial(left, tuple(seeds[i] for i in kept[-1]), values[np.ix_(*kept)], sentence)


def _squares(values: Floats, axes: Sequence[int]) -> float:
    """The sum of squares of the effect of some axes, over all numbers."""
    others = tuple(axis for axis in range(values.ndim) if axis not in axes)
    effect = values.mean(axis=others, keepdims=True)
    for axis in axes:
        effect = effect - effect.mean(axis=axis, keepdims=True)
    return float((effect**2).mean() * values.size)
