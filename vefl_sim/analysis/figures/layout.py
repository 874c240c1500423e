"""Which points of a sweep belong to which line of which panel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vefl_sim.analysis.figures.names import VARIANTS, plain, value_label
from vefl_sim.analysis.figures.reference import name as line_name
from vefl_sim.analysis.figures.request import Request, nearest
from vefl_sim.core.errors import ExperimentError, RunNotFound
from vefl_sim.sweep.points import Point, Sweep
from vefl_sim.sweep.results.measurements import SELECTING, Measurements, RunMeasurements
from vefl_sim.sweep.results.store import Store

_MOST_PANELS = 4  # side by side; more values are lines


@dataclass(frozen=True)
class Dimension:
    """One way in which points differ: by variant, or along an axis."""

    key: str  # by which it is named
    keys: tuple[str, ...]  # all that go with it; none for the variants
    steps: tuple[Any, ...]  # in the order of the file

    def step(self, point: Point) -> Any:
        """Where along it a point is."""
        return tuple(point.values[key] for key in self.keys) if self.keys else point.label

    def value(self, point: Point) -> Any:
        """The value of the key that names it: a number, or text."""
        value = point.values[self.key] if self.keys else point.label
        return value if type(value) in (int, float) else self.cell(point)

    def label(self, point: Point, labels: Mapping[str, str]) -> str:
        """How a point's step is written; all keys are named if the one does not tell the steps apart."""
        if not self.keys:
            return str(point.label)
        return ", ".join(value_label(key, point.values[key], labels) for key in self._telling())

    def cell(self, point: Point) -> str:
        """The same below a heading that names the key."""
        return ", ".join(plain(key, point.values[key]) for key in self._telling()) if self.keys else str(point.label)

    def _telling(self) -> tuple[str, ...]:
        named = self.keys.index(self.key)
        apart = len({plain(self.key, step[named]) for step in self.steps}) == len(self.steps)
        return (self.key,) if apart else (self.key, *(key for key in self.keys if key != self.key))


@dataclass(frozen=True)
class Layout:
    """How the dimensions of a sweep are spread over a figure; `x` are bars side by side."""

    lines: tuple[Dimension, ...]
    panels: tuple[Dimension, ...]
    x: Dimension | None
    labels: Mapping[str, str]  # the user's own
    name: str  # of a line that has no other


@dataclass(frozen=True)
class Group:
    """The repeats of one line, bar or cell."""

    panel: tuple[str, ...]
    row: tuple[str, ...]  # the same for a table
    line: str
    bar: str
    x: Any  # the value that a bar stands for
    points: tuple[Point, ...]
    runs: Mapping[int, Measurements]  # by seed, those that are done

    @property
    def title(self) -> str:
        """What it is within its panel."""
        return ", ".join(filter(None, [self.line, self.bar]))


def layout(sweep: Sweep, request: Request) -> Layout:
    """As the request says; what it leaves open is chosen, so that no two repeats of a line differ but in their seed."""
    known = {dimension.key: dimension for dimension in _dimensions(sweep)}
    known |= {key: Dimension(key, d.keys, d.steps) for d in [*known.values()] for key in d.keys}
    _named("labels", [*request.labels], known)
    panels_key = "rows" if request.kind == "table" else "panels"
    asked = {"lines": request.lines, panels_key: getattr(request, panels_key)}
    bars = request.kind == "total-cost" and request.x not in ("round", "time")
    asked["x"] = [request.x] if bars and request.x else None
    chosen = {where: _named(where, names or [], known) for where, names in asked.items()}
    _require_once([*chosen.values()])
    left = _left(sweep, chosen)
    x = chosen["x"] or ([d for d in left if d.keys] or left)[: int(bars)]
    left = [dimension for dimension in left if dimension not in x]
    lines = chosen["lines"] or ([] if bars and left and left[0].keys else left[:1])
    left = [dimension for dimension in left if dimension not in lines]
    panels = chosen[panels_key]
    apart = len(left) == 1 and len(left[0].steps) <= _MOST_PANELS and bool(lines)
    if asked[panels_key] is None and (request.kind == "table" or apart):
        panels, left = left, []
    return Layout((*lines, *left), tuple(panels), x[0] if x else None, request.labels, sweep.name)


@dataclass(frozen=True)
class ResultSources:
    """Where finished points are looked for: among the runs of a folder, and then among stored results."""

    out: Path
    store: Store | None = None
    learning: bool = True  # whether results are stale if only what is learnt has changed

    def find(self, point: Point) -> Measurements | None:
        """The measurements of a point, if it is done."""
        run = point.run(self.out)
        if run and run.is_done:
            measured = RunMeasurements(run, point.experiment.scheme.kind in SELECTING)
            if _is_whole(measured):
                return measured
        return None if self.store is None else self.store.find(point, learning=self.learning)


def groups(sweep: Sweep, plan: Layout, place: ResultSources) -> list[Group]:
    """Panel by panel, line by line; also those of which nothing is done."""
    return [_group(points, plan, place) for points in _together(sweep, plan)]


def names(sweep: Sweep, plan: Layout) -> list[str]:
    """Every line with its panel, as it is printed."""
    nowhere = [_group(points, plan, None) for points in _together(sweep, plan)]
    return [line_name(", ".join(group.panel), group.line) for group in nowhere]


def _together(sweep: Sweep, plan: Layout) -> list[list[Point]]:
    """The points of each line, bar or cell."""
    dimensions = [*plan.panels, *plan.lines, *([plan.x] if plan.x else [])]
    together: dict[tuple[int, ...], list[Point]] = {}
    for point in sweep.points:
        where = tuple(dimension.steps.index(dimension.step(point)) for dimension in dimensions)
        together.setdefault(where, []).append(point)
    return [together[where] for where in sorted(together)]


def _group(points: Sequence[Point], plan: Layout, place: ResultSources | None) -> Group:
    first, labels = points[0], plan.labels
    line = ", ".join(dimension.label(first, labels) for dimension in plan.lines)
    found = {point.seed: place.find(point) for point in points} if place else {}
    return Group(
        panel=tuple(dimension.label(first, labels) for dimension in plan.panels),
        row=tuple(dimension.cell(first) for dimension in plan.panels),
        line=line or ("" if plan.x else plan.name),
        bar=plan.x.label(first, labels) if plan.x else "",
        x=plan.x.value(first) if plan.x else None,
        points=tuple(points),
        runs={seed: run for seed, run in found.items() if run},
    )


def _is_whole(measured: RunMeasurements) -> bool:
    """Whether its tables can be read; one that is damaged must not keep others from being drawn."""
    try:
        _ = measured.run.summary, measured.rounds, measured.vehicles
    except RunNotFound:
        return False
    return True


def _dimensions(sweep: Sweep) -> list[Dimension]:
    variants = [Dimension(VARIANTS, (), tuple(sweep.labels))] if sweep.labels else []
    return variants + [Dimension(axis.keys[0], axis.keys, axis.steps) for axis in sweep.axes]


def _named(where: str, names: Sequence[str], known: Mapping[str, Dimension]) -> list[Dimension]:
    for name in names:
        if name not in known:
            there = f"there are {', '.join(known)}; the nearest is {nearest(name, [*known])}" if known else "nothing is"
            raise ExperimentError(f'figure.{where} = "{name}": it is not varied in this sweep: {there}.')
    return [known[name] for name in names]


def _require_once(chosen: Sequence[Sequence[Dimension]]) -> None:
    seen = [dimension.keys for dimensions in chosen for dimension in dimensions]
    twice = [dimension.key for dimensions in chosen for dimension in dimensions if seen.count(dimension.keys) > 1]
    if twice:
        raise ExperimentError(f"figure: {twice[0]} is there twice: it can be in one of lines, panels, rows and x.")


def _left(sweep: Sweep, chosen: Mapping[str, Sequence[Dimension]]) -> list[Dimension]:
    used = {dimension.keys for dimensions in chosen.values() for dimension in dimensions}
    return [dimension for dimension in _dimensions(sweep) if dimension.keys not in used]
