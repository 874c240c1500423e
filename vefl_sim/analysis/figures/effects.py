"""The effects of swept keys on a measure: a table, and a picture of shares, interaction and means."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vefl_sim.analysis.figures.curves import numbers, with_band
from vefl_sim.analysis.figures.layout import Dimension, Group, Layout
from vefl_sim.analysis.figures.measures import Measure, decimals, difference_decimals, measure_of, metric_in
from vefl_sim.analysis.figures.names import heading, legend_title, with_symbols
from vefl_sim.analysis.figures.panel import HEIGHT_IN, PAGE_IN, Curves, draw_panel
from vefl_sim.analysis.figures.request import Request
from vefl_sim.analysis.figures.style import PRINT_STYLE, file_contents, legend_below
from vefl_sim.analysis.figures.tables import latex_table, latex_text, markdown_table
from vefl_sim.sweep.effects import REST, SEEDS, Factor, Factorial, complete_factorial
from vefl_sim.sweep.results.result import Measurements

_HEAD = ("effect", "share of variance", "change", "difference")
_MAX_NUMBERED = 8  # levels of a factor, up to which the cells of a heat map have numbers
_COLOURS = ("#3f6aa3", "#c0392b", "#e0a100", "#2e9e5b", "#7d3c98", "#17a2b8", "#8c564b", "#e377c2")
_OTHER_COLOURS = {SEEDS: "#b9c2cb", REST: "#e1e5e9"}


@dataclass(frozen=True)
class Effects:
    """A factorial of one measure, with what is needed to show it."""

    factorial: Factorial
    request: Request  # for the measure itself
    runs: Mapping[int, Measurements]  # some of its runs, which tell the metric

    @classmethod
    def of(cls, groups: Sequence[Group], plan: Layout, request: Request) -> "Effects":
        """The effects of all dimensions that have several steps; raises BadInput if too many points are missing."""
        dimensions = [dimension for dimension in plan.lines if len(dimension.steps) > 1]
        seeds = list(dict.fromkeys(point.seed for group in groups for point in group.points))
        values = np.full([*(len(dimension.steps) for dimension in dimensions), len(seeds)], np.nan)
        for group in groups:
            place = tuple(dimension.steps.index(dimension.step(group.points[0])) for dimension in dimensions)
            values[place] = numbers(group, request).reindex(seeds)
        factors = [_factor(dimension, groups, plan.labels) for dimension in dimensions]
        runs = {number: run for number, group in enumerate(groups) for run in [*group.runs.values()][:1]}
        return cls(complete_factorial(factors, seeds, values), request.measured, runs)

    @property
    def measure(self) -> Measure:
        """What is measured."""
        return measure_of(self.request.kind, metric_in(self.runs.values()))

    @property
    def axes(self) -> tuple[int, int]:
        """The two strongest factors: that of an x-axis, which has numbers if one of them has, and that of lines."""
        first, second = self.factorial.strongest
        is_text = [any(isinstance(value, str) for value in factor.values) for factor in self.factorial.factors]
        return (second, first) if is_text[first] and not is_text[second] else (first, second)

    @property
    def note(self) -> str:
        """What the table shows, and what was left out."""
        seeds = len(self.factorial.seeds)
        note = "shares of the variance; with one seed interactions include chance"
        if seeds > 1:
            note = (
                "shares of the variance between all runs; differences are averaged over the other keys and paired over "
                f"{seeds} seeds, ± half-width of the 95 % confidence interval, * if it excludes 0; with ×: by how much "
                "the second change alters the effect of the first"
            )
        return f"{self.measure.number}: {note}. {self.factorial.left_out}".rstrip()

    def rows(self) -> Iterator[list[str]]:
        """The rows of the table."""
        contrasts = self.factorial.contrasts
        digits = difference_decimals(contrasts, self.measure.digits)
        for effect, share in self.factorial.shares["share"].items():
            own = contrasts[contrasts["effect"] == effect]
            for _, row in own.iterrows():
                difference = f"{row['difference']:+.{digits}f}".replace("-", "−")
                half = "" if np.isnan(row["half_width"]) else f" ± {row['half_width']:.{digits}f}"
                yield [str(effect), share_text(share), row["change"], difference + half + " *" * bool(row["differs"])]
            if not len(own):
                yield [str(effect), share_text(share), "–", "–"]

    def markdown(self) -> str:
        """The table in Markdown; a name is written once."""
        rows = [*self.rows()]
        again = [place > 0 and row[0] == rows[place - 1][0] for place, row in enumerate(rows)]
        shown = [["", "", *row[2:]] if repeated else row for row, repeated in zip(rows, again, strict=True)]
        return f"{markdown_table(_HEAD, shown)}\n{self.note}\n"

    def latex(self) -> str:
        """The table as a LaTeX tabular."""
        return latex_table(_HEAD, [[latex_text(cell) for cell in row] for row in self.rows()], 2, self.note)


def _factor(dimension: Dimension, groups: Sequence[Group], labels: Mapping[str, str]) -> Factor:
    points = {dimension.step(group.points[0]): group.points[0] for group in groups}
    ordered = [points[step] for step in dimension.steps]
    name = legend_title([dimension.key], labels) or heading(dimension.key, labels)
    return Factor(name, tuple(map(dimension.cell, ordered)), tuple(map(dimension.value, ordered)))


def share_text(share: float) -> str:
    """A share of the variance in percent."""
    return f"{100 * share:.1f} %"


def effect_pictures(effects: Effects) -> dict[str, bytes]:
    """Draw the shares of the effects, and the two strongest factors as lines and as a heat map; files by ending."""
    height = HEIGHT_IN + 0.17 * max(0, len(effects.factorial.shares) - 7)
    with rc_context(PRINT_STYLE):
        figure = Figure(figsize=(PAGE_IN, height), layout="constrained")
        shares, lines, cells = figure.subplots(1, 3, width_ratios=(0.9, 1.1, 1))
        draw_shares(shares, {"": effects.factorial.shares["share"]})
        handles = _draw_interaction(lines, effects)
        draw_heat_map(cells, effects)
        legend_below(figure, handles, points=7, title=effects.factorial.factors[effects.axes[1]].name)
        figure.suptitle(with_symbols(effects.request.title), fontsize=9)
        return file_contents(figure)


def draw_shares(axes: Axes, shares: Mapping[str, "pd.Series[float]"]) -> dict[str, Any]:
    """Draw shares of the variance: bars of one measure, or one stacked bar per measure; returns legend handles."""
    table = 100 * pd.concat(shares, axis=1).fillna(0.0)  # one row per effect, one column per measure
    named = [effect for effect in table.index if effect not in _OTHER_COLOURS]
    colours = dict(zip(named, _COLOURS * len(named), strict=False)) | _OTHER_COLOURS
    axes.grid(False, axis="y")
    axes.set_xlabel("share of the variance [%]")
    axes.invert_yaxis()
    if len(shares) == 1:
        own = table.iloc[:, 0]
        bars = axes.barh([with_symbols(_short(effect)) for effect in own.index], own, 0.65)
        for bar, effect in zip(bars, own.index, strict=True):
            bar.set_color(colours[effect])
        axes.bar_label(bars, [f"{share:.1f}" for share in own], padding=2)
        axes.set_xlim(0, 1.18 * max(own.max(), 5))
        return {}
    left = (table.cumsum() - table).to_numpy()
    axes.set_xlim(0, 100)
    return {
        str(effect): axes.barh([*shares], own, 0.65, left=start, color=colours[effect])
        for (effect, own), start in zip(table.iterrows(), left, strict=True)
    }


def _short(effect: str) -> str:
    """The name of an effect; that of an interaction has only symbols: Z × |C_k|."""
    names = effect.split(" × ")
    return effect if len(names) == 1 else " × ".join(name.rpartition("(")[2].removesuffix(")") for name in names)


def _draw_interaction(axes: Axes, effects: Effects) -> dict[str, Any]:
    """Draw the measure against the first of the two strongest factors, one line per level of the other."""
    first, second = (effects.factorial.factors[axis] for axis in effects.axes)
    means = effects.factorial.means(*effects.axes)
    band = effects.request.band if "band" in effects.request.model_fields_set else "ci95"
    groups, tables = [], []
    for j, line in enumerate(second.levels):
        groups += [
            Group((), (), line, level, x, (), effects.runs) for level, x in zip(first.levels, first.values, strict=True)
        ]
        rows = with_band(pd.DataFrame(means[:, j]), band)
        tables.append(rows.assign(panel="", line=line, x=first.values, seeds=means.shape[-1]))
    request = Request(kind=effects.request.kind, x="first", band=band, count=effects.request.count)
    rows = pd.concat(tables, ignore_index=True)
    handles = draw_panel(axes, rows, Curves(rows, groups, request, first.name))
    axes.set_ylabel(with_symbols(effects.measure.number))
    return handles


def draw_heat_map(axes: Axes, effects: Effects) -> None:
    """Draw the means over seeds of the two strongest factors as coloured cells with numbers."""
    first, second = (effects.factorial.factors[axis] for axis in effects.axes)
    table = effects.factorial.means(*effects.axes).mean(axis=-1).T  # rows: levels of the second
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
