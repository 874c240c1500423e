"""The effects of swept keys on a measure: a table, and a picture of shares, interaction and means."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vefl_sim.analysis.figures.chart import Chart
from vefl_sim.analysis.figures.layout import Group, Layout
from vefl_sim.analysis.figures.measures import Measure, decimals, difference_decimals, difference_texts
from vefl_sim.analysis.figures.names import heading, legend_title, with_symbols
from vefl_sim.analysis.figures.panel import HEIGHT_IN, PAGE_IN, SINGLE_COLOUR, draw_panel, legend_below
from vefl_sim.analysis.figures.tables import Table
from vefl_sim.core.arrays import Floats
from vefl_sim.sweep.effects import REST, SEEDS, Factor, Factorial, complete_factorial

_MAX_NUMBERED = 8  # levels of a factor, up to which the cells of a heat map have numbers
_OTHER_COLOURS = {SEEDS: "#b9c2cb", REST: "#e1e5e9"}


@dataclass(frozen=True)
class Effects:
    """A factorial of one measure, with what is needed to show it."""

    factorial: Factorial
    chart: Chart  # of the same runs

    @classmethod
    def of(
        cls, chart: Chart, factors: Sequence[Factor], places: Sequence[tuple[int, ...]], seeds: Sequence[Any]
    ) -> "Effects":
        """The effects in a chart, whose groups are at these levels of the factors; BadInput if too much is missing."""
        values = np.full([*(len(factor.levels) for factor in factors), len(seeds)], np.nan)
        for place, numbers in zip(places, chart.numbers, strict=True):
            values[place] = numbers.reindex([*seeds])
        return cls(complete_factorial(factors, seeds, values), chart)

    @property
    def measure(self) -> Measure:
        """What is measured."""
        return self.chart.measure

    @property
    def axes(self) -> tuple[int, int]:
        """The two strongest factors: that of an x-axis, which has numbers if one of them has, and that of lines."""
        first, second = self.factorial.strongest
        is_text = [any(isinstance(value, str) for value in factor.values) for factor in self.factorial.factors]
        return (second, first) if is_text[first] and not is_text[second] else (first, second)

    @cached_property
    def contrasts(self) -> pd.DataFrame:
        """Differences between levels, with the name of the measure."""
        return self.factorial.contrasts.assign(figure=self.measure.number)

    def table(self) -> Table:
        """The share of each effect, and its differences; a name is written once."""
        rows, digits = [], difference_decimals(self.contrasts, self.measure.digits)
        for effect, share in self.factorial.shares["share"].items():
            own = self.contrasts[self.contrasts["effect"] == effect]
            names = [str(effect), f"{100 * share:.1f} %"]
            for _, row in own.iterrows():
                texts = difference_texts(row, digits)
                rows.append([*names, row["change"], " ".join(filter(None, texts)).replace("-", "−")])
                names = ["", ""]
            if not len(own):
                rows.append([*names, "–", "–"])
        note = "shares of the variance; with one seed interactions include chance"
        if (seeds := len(self.factorial.seeds)) > 1:
            note = (
                "shares of the variance between all runs; differences are averaged over the other keys and paired over "
                f"{seeds} seeds, ± half-width of the 95 % confidence interval, * if it excludes 0; with ×: by how much "
                "the second change alters the effect of the first"
            )
        note = f"{self.measure.number}: {note}. {self.factorial.left_out}".rstrip()
        return Table(("effect", "share of variance", "change", "difference"), rows, 2, note)


def effects_of(chart: Chart, plan: Layout) -> Effects:
    """The effects of all dimensions of a figure that have several steps."""
    points, labels = [group.points[0] for group in chart.groups], chart.request.labels
    factors, places = [], []
    for dimension in (dimension for dimension in plan.lines if len(dimension.steps) > 1):
        at = [dimension.steps.index(dimension.step(point)) for point in points]
        firsts = [points[at.index(level)] for level in range(len(dimension.steps))]
        name = legend_title([dimension.key], labels) or heading(dimension.key, labels)
        factors.append(Factor(name, tuple(map(dimension.cell, firsts)), tuple(map(dimension.value, firsts))))
        places.append(at)
    seeds = list(dict.fromkeys(point.seed for group in chart.groups for point in group.points))
    return Effects.of(chart, factors, [*zip(*places, strict=True)], seeds)


def draw_effects(effects: Effects) -> Figure:
    """Draw the shares of the effects, and the two strongest factors as lines and as a heat map."""
    height = HEIGHT_IN + 0.17 * max(0, len(effects.factorial.shares) - 7)
    figure = Figure(figsize=(PAGE_IN, height), layout="constrained")
    shares, lines, cells = figure.subplots(1, 3, width_ratios=(0.9, 1.1, 1))
    _draw_shares(shares, 100 * effects.factorial.shares["share"])
    first, second = (effects.factorial.factors[axis] for axis in effects.axes)
    means = effects.factorial.means(*effects.axes)
    chart = _interaction(effects, first, second, means)
    legend_below(figure, draw_panel(lines, chart), points=7, title=second.name)
    lines.set_ylabel(with_symbols(effects.measure.number))
    _draw_heat_map(cells, first, second, means.mean(axis=-1).T)
    figure.suptitle(with_symbols(effects.chart.request.title), fontsize=9)
    return figure


def _draw_shares(axes: Axes, shares: "pd.Series[float]") -> None:
    """Draw shares of the variance in percent as bars."""
    colours = [_OTHER_COLOURS.get(effect, SINGLE_COLOUR) for effect in shares.index]
    bars = axes.barh([*map(_short, shares.index)], shares, 0.65, color=colours)
    axes.bar_label(bars, [f"{share:.1f}" for share in shares], padding=2)
    axes.grid(False, axis="y")
    axes.set(xlabel="share of the variance [%]", xlim=(0, 1.18 * max(shares.max(), 5)))
    axes.invert_yaxis()


def _short(effect: str) -> str:
    """The name of an effect; that of an interaction has only symbols: Z × |C_k|."""
    names = effect.split(" × ")
    short = " × ".join(name.rpartition("(")[2].removesuffix(")") for name in names) if len(names) > 1 else effect
    return with_symbols(short)


def _interaction(effects: Effects, first: Factor, second: Factor, means: Floats) -> Chart:
    """The measure against the first factor, one line per level of the second; `means` by levels and seed."""
    request = effects.chart.request.measured
    band = request.band if "band" in request.model_fields_set else "ci95"
    runs = {number: run for number, group in enumerate(effects.chart.groups) for run in [*group.runs.values()][:1]}
    groups, values = [], []
    for (j, line), (i, level) in product(enumerate(second.levels), enumerate(first.levels)):
        groups.append(Group("", line, runs, level, first.values[i]))
        values.append(pd.DataFrame([means[i, j]], [first.values[i]]))
    return Chart(request.model_copy(update={"x": "first", "band": band}), groups, first.name, given=values)


def _draw_heat_map(axes: Axes, first: Factor, second: Factor, table: Floats) -> None:
    """Draw means as coloured cells with numbers: one column per level of the first factor."""
    mesh = axes.pcolormesh(table, cmap="Blues", edgecolor="white", linewidth=0.8)
    if max(table.shape) <= _MAX_NUMBERED:
        digits = decimals([np.ptp(table)], 0)
        for (row, column), value in np.ndenumerate(table):
            ink = "#ffffff" if value > table.min() + 0.55 * np.ptp(table) else "#1a1a1a"
            axes.text(column + 0.5, row + 0.5, f"{value:.{digits}f}", ha="center", va="center", color=ink)
    elif figure := axes.get_figure(root=True):
        figure.colorbar(mesh, ax=axes)
    axes.set_xticks(np.arange(len(first.levels)) + 0.5, [*map(with_symbols, first.levels)])
    axes.set_yticks(np.arange(len(second.levels)) + 0.5, [*map(with_symbols, second.levels)])
    axes.set(xlabel=with_symbols(first.name), ylabel=with_symbols(second.name))
    axes.grid(False)
    axes.tick_params(length=0)
    axes.tick_params(axis="x", rotation=25 if sum(map(len, first.levels)) > 24 else 0)
    axes.spines[:].set_visible(False)
