"""Assigns the points of a sweep to the lines and panels of its figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vefl_sim.analysis.figures.names import VARIANTS, plain, value_label
from vefl_sim.analysis.figures.request import Request, request_from
from vefl_sim.core.errors import ExperimentError, RunNotFound
from vefl_sim.experiment.complaints import nearest
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
        if self._naming_keys() != [self.key]:
            return []
        values = [step[self.keys.index(self.key)] for step in self.steps]
        return values if all(type(value) in (int, float) for value in values) else []

    def label(self, point: Point, labels: Mapping[str, str]) -> str:
        """The label of a point in this dimension; contains all keys if one key does not distinguish the steps."""
        return ", ".join(value_label(key, point.values[key], labels) for key in self._naming_keys()) or str(point.label)

    def cell(self, point: Point) -> str:
        """The label without the name of the key, for a column whose heading names the key."""
        return ", ".join(plain(key, point.values[key]) for key in self._naming_keys()) or str(point.label)

    def _naming_keys(self) -> list[str]:
        """The key of the dimension if its values differ, or else all keys; none for the variants."""
        first = [key for key in self.keys if key == self.key]
        distinct = {plain(key, step[self.keys.index(key)]) for key in first for step in self.steps}
        return first if len(distinct) == len(self.steps) else first + [key for key in self.keys if key != self.key]


@dataclass(frozen=True)
class Layout:
    """Which dimensions of a sweep are lines, which are panels, and which is the x-axis."""

    lines: tuple[Dimension, ...]
    panels: tuple[Dimension, ...]
    x: Dimension | None


@dataclass(frozen=True)
class Group:
    """The points of one line, of one x against a swept key, or of a table cell; one per seed."""

    panel: str  # empty if there is only one
    line: str
    runs: Mapping[int, Measurements]  # of the finished points, by seed
    x_label: str = ""  # against a swept key
    x: Any = None  # its value there
    row: tuple[str, ...] = ()  # names of the row, in a table
    points: Sequence[Point] = ()

    @property
    def title(self) -> str:
        """The name of the group within its panel."""
        return ", ".join(filter(None, [self.line, self.x_label]))


def layout(sweep: Sweep, request: Request) -> Layout:
    """Lay out the figure as requested; the other dimensions are assigned so that a line differs only in its seeds."""
    variants = [Dimension(VARIANTS, (), tuple(sweep.labels))] if sweep.labels else []
    dimensions = variants + [Dimension(axis.keys[0], axis.keys, axis.steps) for axis in sweep.axes]
    known = {key: Dimension(key, d.keys, d.steps) for d in dimensions for key in d.keys or (d.key,)}
    panels_key = "rows" if request.kind == "table" else "panels"
    wanted: dict[str, list[str] | None] = {
        "labels": [*request.labels], "lines": request.lines, panels_key: getattr(request, panels_key),
        "x": [request.x] * bool(request.against_key and request.x),
    }  # fmt: skip
    for where, names in wanted.items():
        choices = [*["round", "time"] * (where == "x" and request.has_rounds), *known]
        for name in (name for name in names or () if name not in known):
            choice = f"choose from {', '.join(choices)} (the nearest is {nearest(name, choices)})" if choices else ""
            raise ExperimentError(
                f'figure.{where} = "{name}": it is not varied in this sweep: {choice or "remove it"}.'
            )
    lines, panels, x = ([known[name] for name in wanted[where] or ()] for where in ("lines", panels_key, "x"))
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
    if wanted[panels_key] is None and (request.kind == "table" or as_panels):
        panels, left = left, []
    return Layout((*lines, *left), tuple(panels), x[0] if x else None)


def _require_numbers(request: Request, x: Sequence[Dimension]) -> None:
    """Refuse a range or a logarithmic scale on an axis of text or, for the scale, of numbers that are not above 0."""
    needs = {"x_range": bool(request.x_range), "x_scale": request.x_scale == "log"}
    for key in (key for key, is_given in needs.items() if is_given):
        for dimension in x:
            if not dimension.numbers or (key == "x_scale" and min(dimension.numbers) <= 0):
                above = " above 0" * (key == "x_scale")
                raise ExperimentError(f"figure.{key}: {dimension.key} is not varied in numbers{above}: remove it.")


def require_drawable(sweep: Sweep) -> tuple[Request, Layout]:
    """The [figure] of a sweep and its layout; raises an ExperimentError if it cannot be drawn, also before the runs."""
    request = request_from(sweep.figure)
    plan = layout(sweep, request)
    own = groups(sweep, request, plan)
    compared = list(dict.fromkeys(filter(None, (name for group in own for name in (group.line, group.title)))))
    named = {"reference": ([*request.reference], [", ".join(filter(None, [g.panel, g.line])) for g in own])}
    named["compare_to"] = [request.compare_to] * bool(request.compare_to), compared
    problems = [
        f"figure.{key}: {line!r} is not a line of this figure: did you mean {nearest(line, known)!r}?"
        for key, (lines, known) in named.items()
        for line in lines
        if line not in known
    ]
    if request.kind == "effects" and sum(len(dimension.steps) > 1 for dimension in plan.lines) < 2:
        problems.append(
            'figure.kind = "effects" needs two or more swept keys (or variants and a key) with several values: sweep '
            "another key, or choose another kind."
        )
    if problems:
        raise ExperimentError(problems)
    return request, plan


def groups(
    sweep: Sweep, request: Request, plan: Layout, out: Path | None = None, store: Store | None = None
) -> list[Group]:
    """The groups of a figure by panel and line; their runs are searched in `out`, then in the stored results."""
    dimensions = [*plan.panels, *plan.lines, *([plan.x] if plan.x else [])]
    by_position: dict[tuple[int, ...], list[Point]] = {}
    for point in sweep.points:
        position = tuple(dimension.steps.index(dimension.step(point)) for dimension in dimensions)
        by_position.setdefault(position, []).append(point)
    found = []
    for _, points in sorted(by_position.items()):
        first, labels = points[0], request.labels
        measured = {point.seed: _measured(point, out, store, request) for point in points} if out else {}
        line = ", ".join(dimension.label(first, labels) for dimension in plan.lines)
        found.append(
            Group(
                panel=", ".join(dimension.label(first, labels) for dimension in plan.panels),
                line=line or ("" if plan.x else sweep.name),
                runs={seed: run for seed, run in measured.items() if run},
                x_label=plan.x.label(first, labels) if plan.x else "",
                x=plan.x.value(first) if plan.x else None,
                row=tuple(dimension.cell(first) for dimension in plan.panels),
                points=points,
            )
        )
    return found


def _measured(point: Point, out: Path, store: Store | None, request: Request) -> Measurements | None:
    """The measurements of a point; None if it is not finished, or if its run is damaged."""
    run = point.run(out)
    if run and run.is_done:
        measured = RunMeasurements(run, declaration("scheme.kind", point.experiment.scheme.kind, "selects", False))
        try:
            _ = run.summary, measured.rounds, measured.vehicles
            return measured
        except RunNotFound:  # a damaged run must not prevent the figure of the others
            pass
    return store.find(point, learning=request.needs_learning) if store else None
