"""The report page of a sweep or comparison."""

import math
import os
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure

from vefl_sim.analysis.figures.chart import CCDFS, Chart, with_band
from vefl_sim.analysis.figures.effects import Effects, draw_effects
from vefl_sim.analysis.figures.measures import decimals, difference_decimals, difference_texts
from vefl_sim.analysis.figures.names import VARIANTS, axis_name, heading, legend_title
from vefl_sim.analysis.figures.panel import STYLE, draw_chart
from vefl_sim.analysis.files import picture, write_file
from vefl_sim.analysis.report.document import Document, Section, fold, html, page_top, pairs, table
from vefl_sim.analysis.report.page import NAME
from vefl_sim.analysis.sweep_report.source import VARIANT, PagePoint, SweepSource, value_text
from vefl_sim.core.errors import BadInput
from vefl_sim.sweep.effects import Factor
from vefl_sim.sweep.paired import seeds_sentence

_MAX_VALUES = 12  # of a parameter, in the list on top
_MAX_LINES = 12  # of a figure
_MAX_ROWS = 1000  # in the list of runs
_MAX_EFFECTS = 60  # rows of a table of effects
_MAX_CELLS_PER_POINT = 10  # with more, the sweep is not a factorial
_SIZE_IN = (4.7, 3.0)
_STATES = {"done": "✓", "failed": "✗", "damaged": "✗", "missing": "?"}
"""Signs before the states of points; all others are not finished yet."""


def write_sweep_report(table: Path, path: Path | None = None) -> Path:
    """Write the page of a sweep or comparison next to its table, or as `path`; returns where it is."""
    path = path or table.parent / NAME
    return write_file(path, sweep_report(SweepSource(table), path.parent).encode())


def sweep_report(source: SweepSource, folder: Path) -> str:
    """The page as HTML, with links that are right in this folder."""
    document = Document(
        title=f"{source.name}: vefl_sim",
        header=_header(source),
        sections=[*_sections(source, folder)],
        scripts=(),
        data={},
        styles=("report.css", "sweep.css"),
    )
    return document.render()


def _header(source: SweepSource) -> str:
    """The sweep in a sentence, warnings, and its parameters."""
    what = "comparison" if source.is_comparison else "sweep"
    points, states = source.points, Counter(point.state for point in source.points)
    seeds, done = len({point.seed for point in points}), states["done"]
    count = f"all {done}" if done == len(points) else f"{done} of {len(points)}"
    combinations = "variants" if source.is_comparison else "combinations of variants and swept values"
    sentence = f"{len(source.groups)} {combinations}, {seeds} seed{'s' * (seeds > 1)}: {count} runs are done."
    return page_top(f"of a {what}", source.name, sentence, _warnings(source)) + pairs(_parameters(source))


def _warnings(source: SweepSource) -> Iterator[tuple[str, str, str]]:
    """Level, title and text of what a reader should know before the results."""
    states = Counter(point.state for point in source.points)
    if bad := states["failed"] + states["damaged"]:
        yield "stop", f"{bad} of {len(source.points)} runs failed or are damaged", "The list of runs gives the reasons."
    if left := len(source.points) - states["done"] - bad:
        yield "warn", f"{left} of {len(source.points)} runs are missing", "Means are over the finished ones."
    if source.others:
        yield "note", f"{source.others} points of other settings are left out", "This page is about the latest."
    if len(source.versions) > 1:
        yield "warn", "The points are of several versions of vefl_sim", ", ".join(source.versions)


def _parameters(source: SweepSource) -> Iterator[tuple[str, object]]:
    for key in source.parameters:
        values = [*dict.fromkeys(value_text(point.parameters[key]) for point in source.points)]
        more = f" … ({len(values)} values)" if len(values) > _MAX_VALUES else ""
        yield key, ", ".join(values[:_MAX_VALUES]) + more
    yield "seeds", ", ".join(dict.fromkeys(str(point.seed) for point in source.points))


def _sections(source: SweepSource, folder: Path) -> Iterator[Section]:
    if source.charts:
        several = "mean over seeds ± half-width of its 95 % confidence interval"
        yield Section("results", "Results", _results(source), f"For each combination: {several}.")
        if tables := "".join(_differences(source)):
            lead = (
                "Paired by seed, because runs with the same seed share traffic, channels, data and first model. "
                "<b>*</b>: the 95 % confidence interval excludes 0."
            )
            yield Section("differences", "Differences", tables, lead)
        if effects := "".join(_effects(source)):
            yield Section("effects", "Effects", effects, "Which key matters more.")
        figures = f"<div class='panels two'>{''.join(_figures(source))}</div>"
        left = f"<p class='quiet'>Figures with more than {_MAX_LINES} lines are left out.</p>"
        figures += left * (len(source.groups) > _MAX_LINES)
        yield Section("figures", "Figures", figures, "Mean and standard deviation over seeds.")
    lead = (
        "A run without a page gets one with <code>python -m vefl_sim report RUN</code>; then write this page again "
        "to link it."
    )
    yield Section("runs", "Runs", _points(source, folder), lead)
    origin = [("table", source.file), ("settings", source.settings or "those of its file")]
    yield Section("origin", "Origin", pairs([*origin, *(("version", version) for version in source.versions)]))


def _results(source: SweepSource) -> str:
    """One row per combination of parameters that has a finished run."""
    columns = []
    for chart in source.charts.values():
        bands = [with_band(numbers.to_frame().T, "ci95").iloc[0] for numbers in chart.numbers]
        digits = decimals((band["mean"] for band in bands), chart.measure.digits)
        columns.append([_cell(band["mean"], band["high"] - band["mean"], digits) for band in bands])
    rows = []
    for (title, own), *cells in zip(source.groups.items(), *columns, strict=True):
        done = sum(point.state == "done" for point in own)
        count = str(done) if done == len(own) else f"{done} of {len(own)}"
        rows += [[html(title), count, *cells]] * bool(done)
    return table(["", "seeds", *source.measures], rows, "Means over seeds")


def _cell(mean: float, half: float, digits: int) -> str:
    interval = "" if math.isnan(half) else f" <span class='quiet'>± {half:.{digits}f}</span>"
    return "–" if math.isnan(mean) else f"{mean:.{digits}f}{interval}"


def _differences(source: SweepSource) -> Iterator[str]:
    """For each combination of swept keys, the paired differences of the variants; without variants, to the first."""
    charts = [*source.charts.values()]
    judged = next((chart for chart in charts if len({*np.concatenate(chart.numbers)}) > 1), charts[0])
    for panel, own in judged.differences.groupby("panel", sort=False):
        by_line: list[dict[str, Any]] = []
        for chart in charts:
            same = chart.differences[chart.differences["panel"] == panel]
            by_line.append({row["line"]: _difference(row, chart) for _, row in same.iterrows()})
        rows = [[html(line), *(cells.get(line, "–") for cells in by_line)] for line in own["line"]]
        sentence = seeds_sentence(own, judged.measure.number, settable=False)
        yield (
            f"<h3>{html(panel)}</h3>" * bool(panel)
            + f"<p class='quiet'>Difference to {html(own['reference'].iloc[0])}</p>"
            + table(["", *source.measures], rows, "Differences")
            + f"<p class='quiet'>{html(sentence)}</p>" * bool(sentence)
        )


def _difference(row: "pd.Series[Any]", chart: Chart) -> str:
    text, half = difference_texts(row, difference_decimals(row, chart.measure.digits))
    half = half.removesuffix("*")
    interval = f" <span class='quiet'>{half}</span>" if half else ""
    return (f"<b>{text} *</b>" if row["differs"] else text or "–").replace("-", "−") + interval


def _effects(source: SweepSource) -> Iterator[str]:
    """The shares of the variance, and for each measure its effects, if the sweep is a factorial of two or more keys."""
    keys: list[str] = []
    for key in source.varying:  # keys that change together are one factor
        keys += [key] * (not any(source.is_function(key, earlier) for earlier in keys))
    if len(keys) < 2:
        return
    firsts = [own[0] for own in source.groups.values()]
    seeds = [*dict.fromkeys(point.seed for point in source.points)]
    factors, places = [], []
    for key in keys:
        levels = [*dict.fromkeys(point.parameters[key] for point in firsts)]
        name = heading(VARIANTS, {}) if key == VARIANT else legend_title([key], {}) or heading(key, {})
        factors.append(Factor(name, tuple(map(value_text, levels)), tuple(levels)))
        places.append([levels.index(point.parameters[key]) for point in firsts])
    if prod([*(len(factor.levels) for factor in factors), len(seeds)]) > _MAX_CELLS_PER_POINT * len(source.points):
        yield "<p class='quiet'>Effects need all combinations of the varied keys, and the sweep has only a few.</p>"
        return
    constant: list[str] = []
    shares: dict[str, dict[str, str]] = {}
    folds: list[str] = []
    for chart in source.charts.values():
        try:
            effects = Effects.of(chart, factors, [*zip(*places, strict=True)], seeds)
        except BadInput as problem:
            yield f"<p class='quiet'>{html(chart.measure.number)}: {html(problem)}</p>"
            continue
        if not np.ptp(effects.factorial.values):
            constant.append(chart.measure.number)
            continue
        own = effects.table()
        shares[chart.measure.number] = {row[0]: row[1] for row in own.rows if row[0]}
        rows = [[*map(html, row)] for row in own.rows[:_MAX_EFFECTS]]
        with rc_context(STYLE):
            drawn = _picture(draw_effects(effects), f"effects on {chart.measure.number}")
        content = table(own.head, rows, f"Effects on {chart.measure.number}")
        content += f"<p class='quiet'>{html(own.note)}</p><figure class='curve' tabindex='0'>{drawn}</figure>"
        folds.append(fold(html(chart.measure.number), content, is_open=not folds))
    if constant:
        yield f"<p class='quiet'>The same in all runs: {html(', '.join(constant))}.</p>"
    if shares:
        names = dict.fromkeys(name for own in shares.values() for name in own)
        rows = [[html(name), *(own.get(name, "–") for own in shares.values())] for name in names]
        yield table(["share of the variance", *shares], rows, "Shares of the variance")
    yield from folds


def _figures(source: SweepSource) -> Iterator[str]:
    """Measures against the first swept key, by round, and distributions, but those of too many lines."""
    key = next((key for key in source.varying if key != VARIANT), "")
    for kind, own in source.charts.items():
        drawn: dict[str, Chart] = {}
        if key:
            drawn[f"{own.measure.number}, by {axis_name(key, {})}"] = source.chart(kind, key)
        if kind in ("accuracy", "loss"):
            drawn[f"{own.measure.in_round}, by round"] = source.chart(kind)
        elif own.measure.sample and not key:
            drawn[f"{own.measure.sample}, {'CCDF' if kind in CCDFS else 'CDF'}"] = source.chart(kind)
        for title, chart in drawn.items():
            if len(chart.lines) <= _MAX_LINES and len(chart.rows):
                with rc_context(STYLE):
                    shown = _picture(draw_chart(chart, _SIZE_IN, 8), title)
                yield f"<figure class='curve'><h3>{html(title)}</h3>{shown}</figure>"


def _picture(figure: Figure, title: str) -> str:
    """A figure within the page; its texts are shapes."""
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": title}):
        content = b64encode(picture(figure, ".svg")).decode()
    return f'<img src="data:image/svg+xml;base64,{content}" alt="{html(title)}">'


def _points(source: SweepSource, folder: Path) -> str:
    """One row per point with its state and, if it exists, a link from this folder to the page of its run."""
    rows = [
        [*(html(value_text(p.parameters[key])) for key in source.parameters), html(p.seed), *_run(p, folder)]
        for p in source.points[:_MAX_ROWS]
    ]
    left = len(source.points) - _MAX_ROWS
    note = f"<p class='quiet'>{left} more points are in {html(source.file.name)}.</p>" if left > 0 else ""
    return table([*source.parameters, "seed", "state", "run", "page"], rows, "Points") + note


def _run(point: PagePoint, folder: Path) -> tuple[str, str, str]:
    """The state of a point, the name of its run directory, and a link to its page."""
    error = f"<div class='quiet'>{html(point.error)}</div>" if point.error else ""
    state = f"{_STATES.get(point.state, '…')} {html(point.state)}{error}"
    name = f"<code>{html(point.name)}</code>" if point.name else "–"
    page = point.measured.run.path / NAME if point.measured else None
    if not page or not page.is_file():
        return state, name, "–"
    where = os.path.relpath(page.resolve(), folder.resolve())
    return state, name, f'<a href="{html(quote(where))}">page</a>'
