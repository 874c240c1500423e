"""Draws the figure of a sweep and writes its files."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from vefl_sim.analysis.figures.band import reference_of
from vefl_sim.analysis.figures.curves import at_marks, curves
from vefl_sim.analysis.figures.layout import Group, Layout, ResultSources, groups, groups_without_runs, layout
from vefl_sim.analysis.figures.measures import BY_METRIC, measure_of, metric_in, scalar
from vefl_sim.analysis.figures.names import axis_name, heading, legend_title
from vefl_sim.analysis.figures.panel import Curves
from vefl_sim.analysis.figures.plot import pictures
from vefl_sim.analysis.figures.reference import require_lines, with_reference
from vefl_sim.analysis.figures.request import Request, request_from
from vefl_sim.analysis.figures.style import require_matplotlib
from vefl_sim.analysis.figures.tables.effects import Effects, effect_pictures, require_factors
from vefl_sim.analysis.figures.tables.grid import grid
from vefl_sim.core.errors import BadInput, CannotWrite, VeflError
from vefl_sim.core.files import atomic_file
from vefl_sim.learning.metric import Metric
from vefl_sim.sweep import paired
from vefl_sim.sweep.points import Point, Sweep
from vefl_sim.sweep.results.store import Store

_LEARNING_KINDS = ("accuracy", "loss", "failure-rate")
_NO_VALUES = dict.fromkeys(_LEARNING_KINDS, "they do not train a model (learning.kind)")
_NO_VALUES["delay"] = "no update was delivered, or they are stored results, which have no delays"
_DIFFERENCE_COLUMNS = ("panel", "line", "reference", "figure", "pairs", "difference", "half_width", "differs")


class NothingToDraw(BadInput):
    """A figure of which no point is finished or stored."""


class IncompleteFigure(VeflError):
    """A figure that was drawn without some of its points: exit code 1."""


@dataclass(frozen=True)
class Drawing:
    """A figure that was drawn: its data, its values at the marks, and its files."""

    name: str
    request: Request
    groups: tuple[Group, ...]
    marks: pd.DataFrame  # values of the curves at the marks of the request
    scalars: pd.DataFrame  # one row per panel, line and seed
    differences: pd.DataFrame
    files: tuple[Path, ...]
    text: str = ""  # the table in Markdown, if figure.kind = "table" or "effects"
    problems: tuple[str, ...] = ()  # stored results that cannot be read, and why

    @property
    def metric(self) -> Metric | None:
        """The metric of all runs that have learnt; None if there is none."""
        return metric_in(run for group in self.groups for run in group.runs.values())

    @property
    def stale(self) -> list[Point]:
        """The points whose stored results are out of date, because the code has changed since."""
        pairs = [(point, group.runs.get(point.seed)) for group in self.groups for point in group.points]
        return [point for point, run in pairs if run and run.stale]

    @property
    def without_value(self) -> list[Point]:
        """The finished points that do not have the measure, for example no accuracy without learning."""
        pairs = [(point, group.runs.get(point.seed)) for group in self.groups for point in group.points]
        return [point for point, run in pairs if run and math.isnan(scalar(run, self.request.measured))]

    @property
    def incomplete(self) -> str:
        """A sentence about the number of missing points; empty if there are none."""
        wanted = sum(len(group.points) for group in self.groups)
        lacking = wanted - sum(len(group.runs) for group in self.groups)
        if not lacking:
            return ""
        are = "is" if lacking == 1 else "are"
        return f"{self.name}: its figure is incomplete: {lacking} of {wanted} points {are} missing (listed above)."


def require_drawable(sweep: Sweep) -> None:
    """Raise an ExperimentError if the [figure] of a sweep cannot be drawn; called before its points are run."""
    _request_and_layout(sweep)


def draw_figure(sweep: Sweep, out: Path, folder: Path | None = None, store: Store | None = None) -> Drawing:
    """Draw from the finished runs in `out`, or else from stored results; write to `folder` or out/figures/<name>."""
    request, plan = _request_and_layout(sweep)
    kind = request.measured.kind
    line_groups = groups(sweep, plan, ResultSources(out, store, kind in _LEARNING_KINDS))
    if not any(group.runs for group in line_groups):
        stored = f" or stored in {store.folder}" if store is not None else ""
        raise NothingToDraw(
            f"{sweep.name}: none of its {len(sweep.points)} points is done in {out}{stored}: run its file first with "
            "python -m vefl_sim sweep and the same --set, --seeds and --out."
        )
    _require_one_metric(sweep, request, line_groups)
    scalars = _scalars(line_groups, request)
    rows = pd.DataFrame() if request.kind in ("table", "effects") else curves(line_groups, request)
    _require_values(sweep, request, line_groups, rows["mean"] if "mean" in rows else scalars["value"])
    differences = _differences(line_groups, request)
    marks, text, content = _content(request, plan, line_groups, rows)
    if request.kind != "effects":
        content["_differences.csv"] = _csv(differences)
    measured = [request.measure] if "measure" in request.model_fields_set else []
    stem = "_".join(filter(None, [sweep.name, request.kind, *measured, request.x.replace(".", "-")]))
    files = write_files(content, stem, folder or out / "figures" / sweep.name)
    problems = () if store is None else tuple(store.problems)
    return Drawing(sweep.name, request, tuple(line_groups), marks, scalars, differences, tuple(files), text, problems)


def _content(
    request: Request, plan: Layout, line_groups: Sequence[Group], rows: pd.DataFrame
) -> tuple[pd.DataFrame, str, dict[str, bytes]]:
    """The values at the marks, the text of a table, and the files by the ending of their names; `rows`: of curves."""
    if request.kind == "table":
        table = grid(line_groups, [heading(dimension.key, request.labels) for dimension in plan.panels], request)
        text = table.markdown()
        return pd.DataFrame(), text, _files(csv=_csv(table.csv_rows()), md=text.encode(), tex=table.latex().encode())
    require_matplotlib()
    if request.kind == "effects":
        effects = Effects.of(line_groups, plan, request)
        text = effects.markdown()
        tables = _files(csv=_csv(effects.contrasts), md=text.encode(), tex=effects.latex().encode())
        shares = {"_shares.csv": _csv(effects.factorial.shares.reset_index())}
        return pd.DataFrame(), text, _files(**effect_pictures(effects)) | tables | shares
    known = [(", ".join(group.panel), group.line) for group in line_groups]
    marks = with_reference(at_marks(rows, request.marks, against_key=plan.x is not None), request, known)
    title = legend_title([dimension.key for dimension in plan.lines], request.labels)
    drawn = pictures(Curves(rows, line_groups, request, _x_name(plan), marks, legend=title))
    at_the_marks = {"_marks.csv": _csv(marks)} if len(marks) else {}
    return marks, "", _files(**drawn, csv=_csv(rows)) | at_the_marks


def _files(**content: bytes) -> dict[str, bytes]:
    return {f".{ending}": data for ending, data in content.items()}


def missing(drawing: Drawing, out: Path) -> Iterator[str]:
    """The points that are missing in a figure, with the state of their run."""
    for group in drawing.groups:
        for point in group.points:
            if point.seed not in group.runs:
                run = point.run(out)
                state = run.state if run else "not started"
                damaged = f"damaged: run the sweep again, or move {run.path} away" if run and run.is_done else state
                yield f"{point.title} ({damaged})"


def _request_and_layout(sweep: Sweep) -> tuple[Request, Layout]:
    """The [figure] of a sweep and its layout; raises an ExperimentError if it does not fit the sweep."""
    request = request_from(sweep.figure)
    plan = layout(sweep, request)
    require_lines(request, groups_without_runs(sweep, plan))
    if request.kind == "effects":
        require_factors(plan)
    return request, plan


def _x_name(plan: Layout) -> str:
    return axis_name(plan.x.key, plan.labels) if plan.x else ""


def _require_values(sweep: Sweep, request: Request, line_groups: Sequence[Group], values: pd.Series) -> None:
    """Raise BadInput if no run has the measure."""
    if values.isna().all():
        kind, metric = request.measured.kind, metric_in(run for group in line_groups for run in group.runs.values())
        name = "accuracy" if kind == "failure-rate" else kind
        reason = _NO_VALUES.get(kind, "nobody got an order")
        if kind == "failure-rate" and metric and not metric.is_share:
            reason = f"they predict numbers, and are judged by their {metric.name}"
        key = "kind" if request.measured is request else "measure"
        raise BadInput(
            f"{sweep.name}: its runs have no {name}, because {reason}, so that this figure.{key} has no values: choose "
            'another, for example "cost", "energy", "sojourn" or "total-cost".'
        )


def _require_one_metric(sweep: Sweep, request: Request, line_groups: Sequence[Group]) -> None:
    """Raise BadInput if the figure would compare, for example, an accuracy with a squared error."""
    names = dict.fromkeys(
        run.metric.name for group in line_groups for run in group.runs.values() if run.rounds["loss"].notna().any()
    )
    if len(names) > 1 and request.measured.kind in BY_METRIC:
        key = "kind" if request.measured is request else "measure"
        raise BadInput(
            f"{sweep.name}: its runs have different metrics ({', '.join(names)}; learning.loss), which figure.{key} = "
            f'"{request.measured.kind}" cannot compare: choose another, for example "cost" or "delivered".'
        )


def _scalars(line_groups: Sequence[Group], request: Request) -> pd.DataFrame:
    """One row per panel, line and seed: the number that is compared between lines."""
    rows = [
        {"panel": ", ".join(group.panel), "line": group.title, "seed": seed, "value": scalar(run, request.measured)}
        for group in line_groups
        for seed, run in group.runs.items()
    ]
    metric = metric_in(run for group in line_groups for run in group.runs.values())
    return pd.DataFrame(rows).assign(figure=measure_of(request.measured.kind, metric).number)


def _differences(line_groups: Sequence[Group], request: Request) -> pd.DataFrame:
    """Differences of every line to the first finished one of its panel, or to figure.compare_to, paired by seed."""
    metric = metric_in(run for group in line_groups for run in group.runs.values())
    name = measure_of(request.measured.kind, metric).number
    finished = [group for group in line_groups if group.runs]
    values = {id(group): _by_seed(group, request) for group in finished}
    rows = []
    for group in finished:
        first = next(other for other in finished if other.panel == group.panel)
        reference = reference_of(group, finished, request.compare_to) if request.compare_to else first
        if reference is None or reference is group:
            continue
        names = {"panel": ", ".join(group.panel), "line": group.title, "reference": reference.title, "figure": name}
        rows.append(names | paired.difference(values[id(group)], values[id(reference)]))
    return pd.DataFrame(rows, columns=list(_DIFFERENCE_COLUMNS))


def _by_seed(group: Group, request: Request) -> pd.Series:
    return pd.Series({seed: scalar(run, request.measured) for seed, run in group.runs.items()}, dtype=float)


def _csv(rows: pd.DataFrame) -> bytes:
    return str(rows.to_csv(index=False)).encode()


def write_files(content: dict[str, bytes], name: str, folder: Path) -> Iterator[Path]:
    """Write files by the ending of their names; each is written atomically, after all content is complete."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for ending, data in content.items():
            path = folder / f"{name}{ending}"
            with atomic_file(path) as partial:
                partial.write_bytes(data)
            yield path
    except (OSError, CannotWrite) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        reason = getattr(cause, "strerror", None) or cause
        raise BadInput(f"{folder} cannot be written ({reason}): choose another --to.") from None
