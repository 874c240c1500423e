"""Draws the figure of a sweep and writes its files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from vefl_sim.analysis.figures.curves import at_marks, curves, line_name, numbers, reference_of
from vefl_sim.analysis.figures.layout import Group, Layout, ResultSources, groups, layout
from vefl_sim.analysis.figures.measures import BY_METRIC, measure_of, metric_in
from vefl_sim.analysis.figures.names import axis_name, heading, legend_title
from vefl_sim.analysis.figures.request import Request, nearest, request_from
from vefl_sim.analysis.figures.tables import grid
from vefl_sim.core.errors import BadInput, CannotWrite, ExperimentError, VeflError
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
    differences: pd.DataFrame
    files: tuple[Path, ...]
    text: str = ""  # the table in Markdown, if figure.kind = "table" or "effects"
    problems: tuple[str, ...] = ()  # stored results that cannot be read, and why

    @property
    def metric(self) -> Metric | None:
        """The metric of all runs that have learnt; None if there is none."""
        return metric_in(run for group in self.groups for run in group.runs.values())

    @property
    def missing(self) -> list[Point]:
        """The points that are neither finished nor stored."""
        return [point for group in self.groups for point in group.points if point.seed not in group.runs]

    @property
    def stale(self) -> list[Point]:
        """The points whose stored results are out of date, because the code has changed since."""
        pairs = [(point, group.runs.get(point.seed)) for group in self.groups for point in group.points]
        return [point for point, run in pairs if run and run.stale]

    @property
    def without_value(self) -> list[Point]:
        """The finished points that do not have the measure, for example no accuracy without learning."""
        lacking = [(group, {*group.runs} - {*numbers(group, self.request).index}) for group in self.groups]
        return [point for group, seeds in lacking for point in group.points if point.seed in seeds]

    @property
    def incomplete(self) -> str:
        """A sentence about the number of missing points; empty if there are none."""
        wanted, lacking = sum(len(group.points) for group in self.groups), len(self.missing)
        are = "is" if lacking == 1 else "are"
        sentence = f"{self.name}: its figure is incomplete: {lacking} of {wanted} points {are} missing (listed above)."
        return sentence if lacking else ""


def require_drawable(sweep: Sweep) -> tuple[Request, Layout]:
    """The [figure] of a sweep and its layout; raises an ExperimentError if it cannot be drawn, also before the runs."""
    request = request_from(sweep.figure)
    plan = layout(sweep, request)
    own = groups(sweep, plan)
    known = [line_name(group.panel_name, group.line) for group in own]
    problems = [
        f"figure.reference: {line!r} is not a line of this figure: did you mean {nearest(line, known)!r}?"
        for line in request.reference
        if line not in known
    ]
    lines = list(dict.fromkeys(filter(None, (name for group in own for name in (group.line, group.title)))))
    if request.compare_to and request.compare_to not in lines:
        problems.append(
            f"figure.compare_to: {request.compare_to!r} is not a line of this figure: did you mean "
            f"{nearest(request.compare_to, lines)!r}?"
        )
    if request.kind == "effects" and sum(len(dimension.steps) > 1 for dimension in plan.lines) < 2:
        problems.append(
            'figure.kind = "effects" needs two or more swept keys (or variants and a key) with several values: sweep '
            "another key, or choose another kind."
        )
    if problems:
        raise ExperimentError(problems)
    return request, plan


def draw_figure(sweep: Sweep, out: Path, folder: Path | None = None, store: Store | None = None) -> Drawing:
    """Draw from the finished runs in `out`, or else from stored results; write to `folder` or out/figures/<name>."""
    request, plan = require_drawable(sweep)
    own = groups(sweep, plan, ResultSources(out, store, request.measured.kind in _LEARNING_KINDS))
    if not any(group.runs for group in own):
        stored = f" or stored in {store.folder}" if store is not None else ""
        raise NothingToDraw(
            f"{sweep.name}: none of its {len(sweep.points)} points is done in {out}{stored}: run its file first with "
            "python -m vefl_sim sweep and the same --set, --seeds and --out."
        )
    rows = pd.DataFrame() if request.kind in ("table", "effects") else curves(own, request)
    _require_values(sweep, request, own, rows)
    differences = _differences(own, request)
    marks, text, content = _content(request, plan, own, rows)
    if request.kind != "effects":
        content["_differences.csv"] = _csv(differences)
    measured = [request.measure] if "measure" in request.model_fields_set else []
    stem = "_".join(filter(None, [sweep.name, request.kind, *measured, request.x.replace(".", "-")]))
    files = write_files(content, stem, folder or out / "figures" / sweep.name)
    problems = () if store is None else tuple(store.problems)
    return Drawing(sweep.name, request, tuple(own), marks, differences, tuple(files), text, problems)


def _content(
    request: Request, plan: Layout, own: Sequence[Group], rows: pd.DataFrame
) -> tuple[pd.DataFrame, str, dict[str, bytes]]:
    """The values at the marks, the text of a table, and the files by the ending of their names; `rows`: of curves."""
    if request.kind == "table":
        table = grid(own, [heading(dimension.key, request.labels) for dimension in plan.panels], request)
        return pd.DataFrame(), table.markdown(), _tables(table.cells, table.markdown(), table.latex())
    from vefl_sim.analysis.figures.effects import Effects, effect_pictures  # imports matplotlib, which takes time
    from vefl_sim.analysis.figures.panel import Curves, pictures

    if request.kind == "effects":
        effects = Effects.of(own, plan, request)
        contrasts = effects.factorial.contrasts.assign(figure=effects.measure.number)
        content = effect_pictures(effects) | _tables(contrasts, effects.markdown(), effects.latex())
        content["_shares.csv"] = _csv(effects.factorial.shares.reset_index())
        return pd.DataFrame(), effects.markdown(), content
    marks = at_marks(rows, request, own)
    title = legend_title([dimension.key for dimension in plan.lines], request.labels)
    x = axis_name(plan.x.key, plan.labels) if plan.x else ""
    content = pictures(Curves(rows, own, request, x, marks, title)) | {".csv": _csv(rows)}
    return marks, "", content | ({"_marks.csv": _csv(marks)} if len(marks) else {})


def _tables(rows: pd.DataFrame, markdown: str, latex: str) -> dict[str, bytes]:
    return {".csv": _csv(rows), ".md": markdown.encode(), ".tex": latex.encode()}


def _csv(rows: pd.DataFrame) -> bytes:
    return str(rows.to_csv(index=False)).encode()


def _require_values(sweep: Sweep, request: Request, own: Sequence[Group], rows: pd.DataFrame) -> None:
    """Raise BadInput if no run has the measure, or if runs of different metrics would be compared."""
    kind, key = request.measured.kind, "kind" if request.measured is request else "measure"
    runs = [run for group in own for run in group.runs.values()]
    metrics = {run.metric.name: run.metric for run in runs if run.rounds["loss"].notna().any()}
    if len(metrics) > 1 and kind in BY_METRIC:
        raise BadInput(
            f"{sweep.name}: its runs have different metrics ({', '.join(metrics)}; learning.loss), which figure.{key} "
            f'= "{kind}" cannot compare: choose another, for example "cost" or "delivered".'
        )
    if not len(rows) and (key == "kind" or not any(len(numbers(group, request)) for group in own)):
        reason = _NO_VALUES.get(kind, "nobody got an order")
        others = [metric.name for metric in metrics.values() if not metric.is_share]
        if kind == "failure-rate" and others:
            reason = f"they predict numbers, and are judged by their {others[0]}"
        raise BadInput(
            f"{sweep.name}: its runs have no {'accuracy' if kind == 'failure-rate' else kind}, because {reason}, so "
            f"that this figure.{key} has no values: choose another, for example "
            '"cost", "energy", "sojourn" or "total-cost".'
        )


def _differences(own: Sequence[Group], request: Request) -> pd.DataFrame:
    """Differences of every line to the first finished one of its panel, or to figure.compare_to, paired by seed."""
    metric = metric_in(run for group in own for run in group.runs.values())
    name = measure_of(request.measured.kind, metric).number
    finished = [group for group in own if group.runs]
    rows = []
    for group in finished:
        first = next(other for other in finished if other.panel == group.panel)
        reference = reference_of(group, finished, request.compare_to) if request.compare_to else first
        if reference is not None and reference is not group:
            names = {"panel": group.panel_name, "line": group.title, "reference": reference.title, "figure": name}
            rows.append(names | paired.difference(numbers(group, request), numbers(reference, request)))
    return pd.DataFrame(rows, columns=list(_DIFFERENCE_COLUMNS))


def write_files(content: Mapping[str, bytes], name: str, folder: Path) -> Iterator[Path]:
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
