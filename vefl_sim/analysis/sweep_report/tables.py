"""The tables of a page: means over seeds, paired differences, and all points with their runs."""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from vefl_sim.analysis.figures.measures import Measure, decimals, difference_decimals, measure_of
from vefl_sim.analysis.report.document import html
from vefl_sim.analysis.report.page import NAME
from vefl_sim.analysis.sweep_report.source import VARIANT, PagePoint, SweepSource, value_text
from vefl_sim.sweep import paired
from vefl_sim.sweep.power import seeds_sentence

MAX_ROWS = 1000
_STATES = {"done": "✓", "failed": "✗", "damaged": "✗", "missing": "?"}
"""Signs before the states of points; all others are not finished yet."""


def results_html(source: SweepSource) -> str:
    """One row per combination of parameters: mean ± half-width of the 95 % confidence interval over seeds."""
    figures = source.by_seed
    means, measures = paired.means(figures), measures_of(source)
    digits = {kind: decimals(means[kind], measure.digits) for kind, measure in measures.items()}
    rows = [
        [html(title), _seeds(source.groups[str(title)]), *(_mean(row, kind, digits[kind]) for kind in measures)]
        for title, row in means.iterrows()
    ]
    return table_html(["", "seeds", *(measure.number for measure in measures.values())], rows, "Means over seeds")


def differences_html(source: SweepSource) -> Iterator[str]:
    """For each combination of swept keys, the paired differences of the variants; without variants, to the first."""
    figures = source.by_seed
    for name, titles in _sections(source).items():
        own = figures.loc[[title for title in titles if title in figures.index.unique(VARIANT)]]
        if len(own.index.unique(VARIANT)) < 2:
            continue
        measures, differences = measures_of(source), paired.differences(own)
        rows = [*difference_rows(differences, measures, "variant")]
        reference = html(own.index[0][0])
        heading = f"<h3>{html(name)}</h3>" if name else ""
        columns = [measure.number for measure in measures.values()]
        first = next((kind for kind in measures if own[kind].nunique() > 1), next(iter(measures)))
        judged = differences[differences["figure"] == first]
        sentence = seeds_sentence(judged, measures[first].number, settable=False)
        yield (
            f"{heading}<p class='quiet'>Difference to {reference}</p>{table_html(['', *columns], rows, 'Differences')}"
            + f"<p class='quiet'>{html(sentence)}</p>" * bool(sentence)
        )


def points_html(source: SweepSource, folder: Path) -> str:
    """One row per point with its state and, if it exists, a link from this folder to the page of its run."""
    rows = [
        [*(html(value_text(p.parameters[key])) for key in source.parameters), html(p.seed), _state(p), *_run(p, folder)]
        for p in source.points[:MAX_ROWS]
    ]
    left = len(source.points) - MAX_ROWS
    note = f"<p class='quiet'>{left} more points are in {html(source.file.name)}.</p>" if left > 0 else ""
    return table_html([*source.parameters, "seed", "state", "run", "page"], rows, "Points") + note


def _sections(source: SweepSource) -> dict[str, list[str]]:
    """The titles that are compared with each other: those that differ only in their variant, if there are variants."""
    if VARIANT not in source.varying or len(source.varying) == 1:
        return {"": [*source.groups]}
    sections: dict[str, list[str]] = {}
    for title, own in source.groups.items():
        sections.setdefault(source.title(own[0], frozenset({VARIANT})), []).append(title)
    return sections


def measures_of(source: SweepSource) -> dict[str, Measure]:
    """The measures of the columns, with their names and digits."""
    return {str(kind): measure_of(str(kind), source.metric) for kind in source.by_seed.columns}


def difference_rows(table: pd.DataFrame, measures: Mapping[str, Measure], by: str) -> Iterator[list[str]]:
    """Rows of differences, one for each value of the column `by`; one column per measure."""
    for title, own in table.groupby(by, sort=False):
        by_kind = {row["figure"]: row for _, row in own.iterrows()}
        yield [html(title), *(_difference(by_kind[kind], measure.digits) for kind, measure in measures.items())]


def _difference(row: pd.Series, least: int) -> str:
    if math.isnan(row["difference"]):
        return "–"
    digits = difference_decimals(row, least)
    text = f"{row['difference']:+.{digits}f}".replace("-", "−")
    return (f"<b>{text} *</b>" if row["differs"] else text) + _half_width(row["half_width"], digits)


def _mean(row: pd.Series, kind: str, digits: int) -> str:
    if math.isnan(row[kind]):
        return "–"
    return f"{row[kind]:.{digits}f}{_half_width(row[f'{kind}_half_width'], digits)}"


def _half_width(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f" <span class='quiet'>± {value:.{digits}f}</span>"


def _seeds(points: Sequence[PagePoint]) -> str:
    done = sum(point.state == "done" for point in points)
    return str(done) if done == len(points) else f"{done} of {len(points)}"


def _state(point: PagePoint) -> str:
    error = f"<div class='quiet'>{html(point.error)}</div>" if point.error else ""
    return f"{_STATES.get(point.state, '…')} {html(point.state)}{error}"


def _run(point: PagePoint, folder: Path) -> tuple[str, str]:
    """The name of the run directory, and a link to its page."""
    name = f"<code>{html(point.name)}</code>" if point.name else "–"
    page = point.measured.run.path / NAME if point.measured else None
    if not page or not page.is_file():
        return name, "–"
    where = os.path.relpath(page.resolve(), folder.resolve())
    return name, f'<a href="{html(quote(where))}">page</a>'


def table_html(head: Iterable[str], rows: Iterable[Sequence[str]], label: str) -> str:
    """A table that can be scrolled sideways; the cells are HTML."""
    top = "".join(f'<th scope="col">{html(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    table = f"<table class='points'><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class='wide' tabindex='0' role='region' aria-label='{html(label)}'>{table}</div>"
