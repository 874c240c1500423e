"""The effects of swept keys on a measure: a table, and a picture of shares, interaction and means."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vefl_sim.analysis.figures.band import with_band
from vefl_sim.analysis.figures.layout import Dimension, Group, Layout
from vefl_sim.analysis.figures.measures import Measure, decimals, difference_decimals, measure_of, metric_in, scalar
from vefl_sim.analysis.figures.names import heading, legend_title, with_symbols
from vefl_sim.analysis.figures.panel import Curves, draw_panel
from vefl_sim.analysis.figures.plot import HEIGHT_IN, PAGE_IN, PRINT_STYLE, file_content
from vefl_sim.analysis.figures.request import Request
from vefl_sim.analysis.figures.style import legend_below
from vefl_sim.analysis.figures.tables.typeset import latex_table, latex_text, markdown_table
from vefl_sim.core.errors import ExperimentError
from vefl_sim.sweep.effects import REST, SEEDS, Factor, Factorial, complete_factorial
from vefl_sim.sweep.results.result import Measurements

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEAD = ("effect", "share of variance", "change", "difference")
_MAX_NUMBERED = 8  # levels of a factor, up to which the cells of a heat map have numbers
_EFFECT_COLOURS = ("#3f6aa3", "#c0392b", "#e0a100", "#2e9e5b", "#7d3c98", "#17a2b8", "#8c564b", "#e377c2")
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
        dimensions = _varied(plan)
        seeds = list(dict.fromkeys(point.seed for group in groups for point in group.points))
        values = np.full([*(len(dimension.steps) for dimension in dimensions), len(seeds)], np.nan)
        for group in groups:
            place = tuple(dimension.steps.index(dimension.step(group.points[0])) for dimension in dimensions)
            for seed, run in group.runs.items():
                values[(*place, seeds.index(seed))] = scalar(run, request.measured)
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
    def contrasts(self) -> pd.DataFrame:
        """The differences between levels, with the name of the measure."""
        return self.factorial.contrasts.assign(figure=self.measure.number)

    @property
    def note(self) -> str:
        """What the table shows."""
        seeds = len(self.factorial.seeds)
        if seeds == 1:
            return f"{self.measure.number}: shares of the variance; with one seed interactions include chance"
        return (
            f"{self.measure.number}: shares of the variance between all runs; differences are averaged over the other "
            f"keys and paired over {seeds} seeds, ± half-width of the 95 % confidence interval, * if "
            "it excludes 0; with ×: by how much the second change alters the effect of the first"
        )

    def rows(self) -> Iterator[list[str]]:
        """The rows of the table."""
        contrasts = self.factorial.contrasts
        digits = difference_decimals(contrasts, self.measure.digits)
        for effect, share in self.factorial.shares["share"].items():
            own = contrasts[contrasts["effect"] == effect]
            for _, row in own.iterrows():
                yield [str(effect), share_text(share), row["change"], difference_text(row, digits)]
            if not len(own):
                yield [str(effect), share_text(share), "–", "–"]

    def markdown(self) -> str:
        """The table in Markdown; a name is written once."""
        rows = [*self.rows()]
        again = [place > 0 and row[0] == rows[place - 1][0] for place, row in enumerate(rows)]
        shown = [["", "", *row[2:]] if repeated else row for row, repeated in zip(rows, again, strict=True)]
        left_out = f" {self.factorial.left_out}" if self.factorial.left_out else ""
        return f"{markdown_table(_HEAD, shown)}\n{self.note}.{left_out}\n"

    def latex(self) -> str:
        """The table as a LaTeX tabular."""
        rows = [[latex_text(cell) for cell in row] for row in self.rows()]
        return latex_table(_HEAD, rows, 2, " ".join(filter(None, [self.note + ".", self.factorial.left_out])))


def require_factors(plan: Layout) -> None:
    """Raise an ExperimentError unless at least two dimensions have several steps."""
    if len(_varied(plan)) < 2:
        raise ExperimentError(
            'figure.kind = "effects" needs two or more swept keys (or variants and a key) with several values: sweep '
            "another key, or choose another kind."
        )


def share_text(share: float) -> str:
    """A share of the variance in percent."""
    return f"{100 * share:.1f} %"


def difference_text(row: pd.Series, digits: int) -> str:
    """A difference with its interval, for example +0.31 ± 0.05 *."""
    text = f"{row['difference']:+.{digits}f}".replace("-", "−")
    half = "" if np.isnan(row["half_width"]) else f" ± {row['half_width']:.{digits}f}"
    return text + half + (" *" if row["differs"] else "")


def effect_pictures(effects: Effects) -> dict[str, bytes]:
    """Draw the shares of the effects, and the two strongest factors as lines and as a heat map; files by ending."""
    import matplotlib.pyplot as plt

    height = HEIGHT_IN + 0.17 * max(0, len(effects.factorial.shares) - 7)
    with plt.rc_context(PRINT_STYLE):
        figure, (shares, lines, cells) = plt.subplots(
            1, 3, layout="constrained", figsize=(PAGE_IN, height), gridspec_kw={"width_ratios": (0.9, 1.1, 1)}
        )
        draw_shares(shares, {"": effects.factorial.shares["share"]})
        handles = draw_interaction(lines, effects)
        draw_heat_map(cells, effects)
        second = effects.factorial.factors[effects.axes[1]]
        legend_below(figure, handles, points=7, title=with_symbols(second.name))
        if title := effects.request.title:
            figure.suptitle(with_symbols(title), fontsize=9)
        drawn = {ending: file_content(figure, ending) for ending in ("pdf", "png")}
        plt.close(figure)
    return drawn


def draw_shares(axes: "Axes", shares: Mapping[str, "pd.Series[float]"]) -> dict[str, Any]:
    """Draw shares of the variance: bars of one measure, or one stacked bar per measure; returns legend handles."""
    effects = [*dict.fromkeys(effect for own in shares.values() for effect in own.index)]
    colours = dict(zip([e for e in effects if e not in _OTHER_COLOURS], _EFFECT_COLOURS * len(effects), strict=False))
    colours |= _OTHER_COLOURS
    axes.grid(False, axis="y")
    axes.set(xlabel="share of the variance [%]", xlim=(0, 100))
    if len(shares) > 1:
        return _stacked(axes, shares, effects, colours)
    (own,) = shares.values()
    bars = axes.barh(range(len(own)), 100 * own.to_numpy(float), 0.65, color=[colours[effect] for effect in effects])
    axes.bar_label(bars, [f"{100 * share:.1f}" for share in own], padding=2)
    axes.set_xlim(0, 118 * max(own.max(), 0.05))
    axes.set_yticks(range(len(own)), [with_symbols(_short(effect)) for effect in own.index])
    axes.invert_yaxis()
    return {}


def _short(effect: str) -> str:
    """The name of an effect; that of an interaction has only symbols: Z × |C_k|."""
    names = effect.split(" × ")
    return effect if len(names) == 1 else " × ".join(name.rpartition("(")[2].removesuffix(")") for name in names)


def _stacked(
    axes: "Axes", shares: Mapping[str, "pd.Series[float]"], effects: Sequence[str], colours: Mapping[str, str]
) -> dict[str, Any]:
    handles, left = {}, np.zeros(len(shares))
    for effect in effects:
        widths = np.array([100 * own.get(effect, 0.0) for own in shares.values()])
        handles[effect] = axes.barh(range(len(shares)), widths, 0.65, left=left, color=colours[effect])
        left += widths
    axes.set_yticks(range(len(shares)), list(shares))
    axes.invert_yaxis()
    return handles


def draw_interaction(axes: "Axes", effects: Effects) -> dict[str, Any]:
    """Draw the measure against the first of the two strongest factors, one line per level of the other."""
    factorial = effects.factorial
    first, second = (factorial.factors[axis] for axis in effects.axes)
    means = factorial.means(*effects.axes)
    band = effects.request.band if "band" in effects.request.model_fields_set else "ci95"
    request = Request(kind=effects.request.kind, x="first", band=band, count=effects.request.count)
    groups, tables = [], []
    for j, line in enumerate(second.levels):
        for i, x in enumerate(first.values):
            groups.append(Group((), (), line, first.levels[i], x, (), effects.runs))
            rows = with_band(pd.DataFrame(means[i, j][np.newaxis, :]), band)
            tables.append(rows.assign(panel="", line=line, x=[x], seeds=means.shape[-1]))
    rows = pd.concat(tables, ignore_index=True)
    handles = draw_panel(axes, rows, Curves(rows, groups, request, first.name))
    axes.set_ylabel(with_symbols(effects.measure.number))
    return handles


def draw_heat_map(axes: "Axes", effects: Effects) -> None:
    """Draw the means over seeds of the two strongest factors as coloured cells with numbers."""
    factorial = effects.factorial
    first, second = (factorial.factors[axis] for axis in effects.axes)
    table = factorial.means(*effects.axes).mean(axis=-1).T  # rows: levels of the second
    mesh = axes.pcolormesh(table, cmap="Blues", edgecolor="white", linewidth=0.8)
    dark = table.min() + 0.55 * np.ptp(table)
    digits = decimals([np.ptp(table)], 0)
    if max(table.shape) <= _MAX_NUMBERED:
        for (row, column), value in np.ndenumerate(table):
            ink = "#ffffff" if value > dark else "#1a1a1a"
            axes.text(column + 0.5, row + 0.5, f"{value:.{digits}f}", ha="center", va="center", color=ink)
    elif figure := axes.figure:
        figure.colorbar(mesh, ax=axes)
    axes.set_xticks(np.arange(len(first.levels)) + 0.5, [with_symbols(level) for level in first.levels])
    axes.set_yticks(np.arange(len(second.levels)) + 0.5, [with_symbols(level) for level in second.levels])
    if sum(map(len, first.levels)) > 24:
        axes.tick_params(axis="x", rotation=25)
    axes.set(xlabel=with_symbols(first.name), ylabel=with_symbols(second.name))
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _varied(plan: Layout) -> list[Dimension]:
    return [dimension for dimension in plan.lines if len(dimension.steps) > 1]


def _factor(dimension: Dimension, groups: Sequence[Group], labels: Mapping[str, str]) -> Factor:
    points = {dimension.step(group.points[0]): group.points[0] for group in groups}
    ordered = [points[step] for step in dimension.steps]
    name = legend_title([dimension.key], labels) or heading(dimension.key, labels)
    return Factor(name, tuple(map(dimension.cell, ordered)), tuple(map(dimension.value, ordered)))
