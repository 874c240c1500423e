"""The effects of the swept keys on the measures of a page, as tables and pictures."""

from functools import partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vefl_sim.analysis.figures.effects import Effects, draw_heat_map, draw_shares, share_text
from vefl_sim.analysis.figures.measures import Measure
from vefl_sim.analysis.figures.names import VARIANTS, heading, legend_title, with_symbols
from vefl_sim.analysis.figures.request import Request
from vefl_sim.analysis.figures.style import legend_below
from vefl_sim.analysis.report.document import html
from vefl_sim.analysis.sweep_report.drawings import drawn_svg, figures_html, is_function
from vefl_sim.analysis.sweep_report.source import VARIANT, SweepSource, value_text
from vefl_sim.analysis.sweep_report.tables import difference_rows, measures_of, table_html
from vefl_sim.core.errors import BadInput
from vefl_sim.sweep.effects import Factor, complete_factorial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_CONTRASTS = 60  # rows; with more, those of interactions are left out
_MAX_CELLS_PER_POINT = 10  # with more, the sweep is not a factorial


def effects_html(source: SweepSource) -> str:
    """Shares of the variance, differences and pictures; empty if fewer than two keys vary."""
    keys = _factor_keys(source)
    if len(keys) < 2:
        return ""
    by_kind, notes = {}, []
    for kind, measure in measures_of(source).items():
        try:
            effects = _effects(source, keys, kind)
        except BadInput as problem:
            notes.append(str(problem))
            continue
        notes.append(effects.factorial.left_out)
        if np.ptp(effects.factorial.values) > 0:
            by_kind[kind] = effects
        else:
            notes.append(f"The same in all runs: {measure.number}.")
    measures = {kind: measure for kind, measure in measures_of(source).items() if kind in by_kind}
    text = "".join(f"<p class='quiet'>{html(note)}</p>" for note in dict.fromkeys(filter(None, notes)))
    if not by_kind:
        return text
    return text + _shares_html(by_kind, measures) + _contrasts_html(by_kind, measures) + _pictures(by_kind, measures)


def _factor_keys(source: SweepSource) -> list[str]:
    """The varying keys, without those that change together with an earlier one."""
    keys: list[str] = []
    for key in source.varying:
        if not any(is_function(source, key, earlier) for earlier in keys):
            keys.append(key)
    return keys


def _effects(source: SweepSource, keys: list[str], kind: str) -> Effects:
    """The effects on one measure; raises BadInput if too many points are missing."""
    levels = [[*dict.fromkeys(point.parameters[key] for point in source.points)] for key in keys]
    seeds = [*dict.fromkeys(point.seed for point in source.points)]
    if prod([*map(len, levels), len(seeds)]) > _MAX_CELLS_PER_POINT * len(source.points):
        raise BadInput("Effects need all combinations of the varied keys, of which the sweep has only a few.")
    values = np.full([*map(len, levels), len(seeds)], np.nan)
    for point in source.points:
        place = tuple(own.index(point.parameters[key]) for key, own in zip(keys, levels, strict=True))
        values[(*place, seeds.index(point.seed))] = point.numbers.get(kind, np.nan)
    factors = [
        Factor(_name(key), tuple(map(value_text, own)), tuple(own)) for key, own in zip(keys, levels, strict=True)
    ]
    runs = {number: point.measured for number, point in enumerate(source.points) if point.measured}
    request = Request.model_validate({"kind": kind})
    return Effects(complete_factorial(factors, seeds, values), request, runs)


def _name(key: str) -> str:
    return heading(VARIANTS, {}) if key == VARIANT else legend_title([key], {}) or heading(key, {})


def _shares_html(by_kind: dict[str, Effects], measures: dict[str, Measure]) -> str:
    shares = {kind: effects.factorial.shares["share"] for kind, effects in by_kind.items()}
    effects = [*dict.fromkeys(effect for own in shares.values() for effect in own.index)]
    rows = [[html(effect), *(share_text(own.get(effect, np.nan)) for own in shares.values())] for effect in effects]
    return table_html(["share of the variance", *(m.number for m in measures.values())], rows, "Shares of the variance")


def _contrasts_html(by_kind: dict[str, Effects], measures: dict[str, Measure]) -> str:
    table = pd.concat([effects.factorial.contrasts.assign(figure=kind) for kind, effects in by_kind.items()])
    if len(table) > _MAX_CONTRASTS * len(by_kind):
        table = table[~table["effect"].str.contains(" × ", regex=False)]
    table["title"] = table["effect"] + ": " + table["change"]
    rows = [*difference_rows(table, measures, "title")][:_MAX_CONTRASTS]
    return table_html(["change", *(measure.number for measure in measures.values())], rows, "Effects")


def _heat_map(effects: Effects, _: "Figure", axes: "Axes") -> None:
    draw_heat_map(axes, effects)


def _pictures(by_kind: dict[str, Effects], measures: dict[str, Measure]) -> str:
    """The shares as stacked bars, and a heat map of each measure."""

    def shares(figure: "Figure", axes: "Axes") -> None:
        own = {measures[kind].number: effects.factorial.shares["share"] for kind, effects in by_kind.items()}
        handles = draw_shares(axes, own)
        legend_below(figure, handles, {effect: with_symbols(effect) for effect in handles}, points=8)

    drawn = {"share of the variance": drawn_svg(shares, "share of the variance")}
    for kind, effects in by_kind.items():
        title = measures[kind].number
        drawn[title] = drawn_svg(partial(_heat_map, effects), title)
    return figures_html(drawn.items())
