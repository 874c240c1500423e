"""The report page of a sweep or comparison."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from vefl_sim.analysis.report.document import Document, Section, html, pairs
from vefl_sim.analysis.report.page import NAME, write_page
from vefl_sim.analysis.sweep_report.drawings import MAX_LINES, drawings, figures_html
from vefl_sim.analysis.sweep_report.effects import effects_html
from vefl_sim.analysis.sweep_report.source import SweepSource, value_text
from vefl_sim.analysis.sweep_report.tables import differences_html, points_html, results_html

_MAX_VALUES = 12  # of a parameter, in the list on top


def write_sweep_report(table: Path, path: Path | None = None) -> Path:
    """Write the page of a sweep or comparison next to its table, or as `path`; returns where it is."""
    path = path or table.parent / NAME
    return write_page(path, sweep_report(SweepSource(table), path.parent))


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
    items = "".join(
        f"<li class='{level}'><b>{html(title)}.</b> {html(text)}</li>" for level, title, text in _warnings(source)
    )
    warnings = f"<ul class='warnings' id='warnings' aria-label='Warnings'>{items}</ul>" if items else ""
    return (
        f"<p class='eyebrow'>vefl_sim report of a {what}</p><h1>{html(source.name)}</h1>"
        f"<p class='sentence' id='sentence'>{html(sentence(source))}</p>{warnings}{pairs(_parameters(source))}"
    )


def sentence(source: SweepSource) -> str:
    """How many points there are, and how many are done."""
    points = source.points
    seeds = len({point.seed for point in points})
    done = sum(point.state == "done" for point in points)
    count = f"all {done}" if done == len(points) else f"{done} of {len(points)}"
    combinations = "variants" if source.is_comparison else "combinations of variants and swept values"
    return f"{len(source.groups)} {combinations}, {seeds} seed{'s' * (seeds > 1)}: {count} runs are done."


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
    if len(source.by_seed.columns):
        several = "mean over seeds ± half-width of its 95 % confidence interval"
        yield Section("results", "Results", results_html(source), f"For each combination: {several}.")
        if tables := "".join(differences_html(source)):
            lead = (
                "Paired by seed, because runs with the same seed share traffic, channels, data and first model. "
                "<b>*</b>: the 95 % confidence interval excludes 0."
            )
            yield Section("differences", "Differences", tables, lead)
        if effects := effects_html(source):
            lead = (
                "Which key matters more: the share of each key, and of its interactions, in the variance between all "
                "runs (an analysis of variance with the seeds as blocks; the rest is how much effects differ between "
                "seeds), and what a change of it does, averaged over the other keys and paired by seed. With ×: by how "
                "much the second change alters the effect of the first. <b>*</b>: the 95 % confidence interval "
                "excludes 0."
            )
            yield Section("effects", "Effects", effects, lead)
        yield Section("figures", "Figures", _figures(source), "Mean and standard deviation over seeds.")
    lead = (
        "A run without a page gets one with <code>python -m vefl_sim report RUN</code>; then write this page again "
        "to link it."
    )
    yield Section("runs", "Runs", points_html(source, folder), lead)
    yield Section("origin", "Origin", pairs(_origin(source)))


def _figures(source: SweepSource) -> str:
    left = f"<p class='quiet'>Figures with more than {MAX_LINES} lines are left out.</p>"
    return figures_html(drawings(source)) + left * (len(source.groups) > MAX_LINES)


def _origin(source: SweepSource) -> Iterator[tuple[str, object]]:
    yield "table", source.file
    yield "settings", source.settings or "those of its file"
    for version in source.versions:
        yield "version", version
