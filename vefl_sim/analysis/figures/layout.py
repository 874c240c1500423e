"""Assigns the points of a sweep to the lines and panels of its figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vefl_sim.analysis.figures.names import VARIANTS, plain, value_label
from vefl_sim.analysis.figures.request import Request, nearest
from vefl_sim.core.errors import ExperimentError, RunNotFound
from vefl_sim.experiment.plugins import declaration
from vefl_sim.sweep.points import Point, Sweep
from vefl_sim.sweep.results.result import Measurements, RunMeasurements
from vefl_sim.sweep.results.store import Store

_MOST_PANELS = 4  # side by side; a dimension with more values is drawn as lines


@dataclass(frozen=True)
class Dimension:
    """One way in which points differ: by variant, or along an axis of the sweep."""

    key: str  # the key that names the dimension
    keys: tuple[str, ...]  # all keys that change together; none for the variants
    steps: tuple[Any, ...]  # its values in the order of the file

    def step(self, point: Point) -> Any:
        """The value of the dimension at a point."""
        return tuple(point.values[key] for key in self.keys) if self.keys else point.label

    def value(self, point: Point) -> Any:
        """The place of a point on an x-axis: a number if all values are, and distinguish the points; or else text."""
        return point.values[self.key] if self.numbers else self.cell(point)

    @property
    def numbers(self) -> list[float]:
        """The values of the key that names the dimension; empty if they are not numbers, or do not distinguish it."""
        if self._naming_keys() != (self.key,):
            return []
        values = [step[self.keys.index(self.key)] for step in self.steps]
        return values if all(type(value) in (int, float) for value in values) else []

    def label(self, point: Point, labels: Mapping[str, str]) -> str:
        """The label of a point in this dimension; contains all keys if one key does not distinguish the steps."""
        return ", ".join(value_label(key, point.values[key], labels) for key in self._naming_keys()) or str(point.label)

    def cell(self, point: Point) -> str:
        """The label without the name of the key, for a column whose heading names the key."""
        return ", ".join(plain(key, point.values[key]) for key in self._naming_keys()) or str(point.label)

    def _naming_keys(self) -> tuple[str, ...]:
        """The key of the dimension if its values differ, or else all keys; none for the variants."""
        if not self.keys:
            return ()
        position = self.keys.index(self.key)
        distinct = len({plain(self.key, step[position]) for step in self.steps}) == len(self.steps)
        return (self.key,) if distinct else (self.key, *(key for key in self.keys if key != self.key))


@dataclass(frozen=True)
class Layout:
    """Which dimensions of a sweep are lines, which are panels, and which is the x-axis."""

    lines: tuple[Dimension, ...]
    panels: tuple[Dimension, ...]
    x: Dimension | None
    labels: Mapping[str, str]  # user-defined labels by key
    name: str  # of the only line, if there is no dimension to name it by


@dataclass(frozen=True)
class Group:
    """The points of one line, of one x against a swept key, or of a table cell; one per seed."""

    panel: tuple[str, ...]
    row: tuple[str, ...]  # names of the row, in a table
    line: str
    x_label: str  # against a swept key
    x: Any  # its value there
    points: tuple[Point, ...]
    runs: Mapping[int, Measurements]  # of the finished points, by seed

    @property
    def title(self) -> str:
        """The name of the group within its panel."""
        return ", ".join(filter(None, [self.line, self.x_label]))

    @property
    def panel_name(self) -> str:
        """The name of the panel; empty if there is only one."""
        return ", ".join(self.panel)


def layout(sweep: Sweep, request: Request) -> Layout:
    """Lay out the figure as requested; the other dimensions are assigned so that a line differs only in its seeds."""
    variants = [Dimension(VARIANTS, (), tuple(sweep.labels))] if sweep.labels else []
    dimensions = variants + [Dimension(axis.keys[0], axis.keys, axis.steps) for axis in sweep.axes]
    known = {key: Dimension(key, d.keys, d.steps) for d in dimensions for key in d.keys or (d.key,)}
    _named("labels", [*request.labels], known)
    panels_key = "rows" if request.kind == "table" else "panels"
    panels_wanted: list[str] | None = getattr(request, panels_key)
    lines = _named("lines", request.lines or [], known)
    panels = _named(panels_key, panels_wanted or [], known)
    x = _named(
        "x", [request.x] * bool(request.against_key and request.x), known, ["round", "time"] * request.has_rounds
    )
    used = [dimension.keys for dimension in (*lines, *panels, *x)]
    for dimension in (*lines, *panels, *x):
        if used.count(dimension.keys) > 1:
            raise ExperimentError(
                f"figure: {dimension.key} is used twice: use it in only one of lines, panels, rows and x."
            )
    left = [dimension for dimension in dimensions if dimension.keys not in used]
    if request.against_key and not x:
        x = ([dimension for dimension in left if dimension.keys] or left)[:1]
        left = [dimension for dimension in left if dimension not in x]
    _require_numbers(request, x)
    if not lines and not (request.against_key and left and left[0].keys):
        lines, left = left[:1], left[1:]
    as_panels = len(left) == 1 and len(left[0].steps) <= _MOST_PANELS and bool(lines) and request.kind != "effects"
    if panels_wanted is None and (request.kind == "table" or as_panels):
        panels, left = left, []
    return Layout((*lines, *left), tuple(panels), x[0] if x else None, request.labels, sweep.name)


def _named(
    where: str, names: Sequence[str], known: Mapping[str, Dimension], others: Sequence[str] = ()
) -> list[Dimension]:
    """The dimensions with these names; `others`: what else could have been chosen, for the error message."""
    choices = [*others, *known]
    for name in names:
        if name not in known:
            choice = "remove it"
            if choices:
                choice = f"choose from {', '.join(choices)} (the nearest is {nearest(name, choices)})"
            raise ExperimentError(f'figure.{where} = "{name}": it is not varied in this sweep: {choice}.')
    return [known[name] for name in names]


def _require_numbers(request: Request, x: Sequence[Dimension]) -> None:
    """Refuse a range or a logarithmic scale on an axis of text or, for the scale, of numbers that are not above 0."""
    for dimension in x:
        values = dimension.numbers
        if request.x_range and not values:
            raise ExperimentError(f"figure.x_range has no effect, because {dimension.key} has no numbers: remove it.")
        if request.x_scale == "log" and (not values or min(values) <= 0):
            raise ExperimentError(
                f'figure.x_scale = "log": the values of {dimension.key} are not numbers above 0: remove it.'
            )


@dataclass(frozen=True)
class ResultSources:
    """Where finished points are searched: first in the run directories of a folder, then in the stored results."""

    out: Path
    store: Store | None = None
    learning: bool = True  # whether a change of the learning code alone makes stored results stale

    def find(self, point: Point) -> Measurements | None:
        """The measurements of a point; None if it is not finished, or if its run is damaged."""
        run = point.run(self.out)
        if run and run.is_done:
            measured = RunMeasurements(run, declaration("scheme.kind", point.experiment.scheme.kind, "selects", False))
            try:
                _ = run.summary, measured.rounds, measured.vehicles
                return measured
            except RunNotFound:  # a damaged run must not prevent the figure of the others
                pass
        return None if self.store is None else self.store.find(point, learning=self.learning)


def groups(sweep: Sweep, plan: Layout, sources: ResultSources | None = None) -> list[Group]:
    """The groups of a figure by panel and line, including those without finished points; without sources, all are."""
    dimensions = [*plan.panels, *plan.lines, *([plan.x] if plan.x else [])]
    by_position: dict[tuple[int, ...], list[Point]] = {}
    for point in sweep.points:
        position = tuple(dimension.steps.index(dimension.step(point)) for dimension in dimensions)
        by_position.setdefault(position, []).append(point)
    return [_group(by_position[position], plan, sources) for position in sorted(by_position)]


def _group(points: Sequence[Point], plan: Layout, sources: ResultSources | None) -> Group:
    first, labels = points[0], plan.labels
    line = ", ".join(dimension.label(first, labels) for dimension in plan.lines)
    measured = {point.seed: sources.find(point) for point in points} if sources else {}
    return Group(
        panel=tuple(dimension.label(first, labels) for dimension in plan.panels),
        row=tuple(dimension.cell(first) for dimension in plan.panels),
        line=line or ("" if plan.x else plan.name),
        x_label=plan.x.label(first, labels) if plan.x else "",
        x=plan.x.value(first) if plan.x else None,
        points=tuple(points),
        runs={seed: run for seed, run in measured.items() if run},
    )
