"""A figure of a sweep: drawn, written, and told in a few lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from vefl_sim.analysis.figures.curves import at_marks, curves
from vefl_sim.analysis.figures.grid import grid
from vefl_sim.analysis.figures.layout import Group, Layout, ResultSources, groups, layout, names
from vefl_sim.analysis.figures.measures import SCALARS, scalar
from vefl_sim.analysis.figures.names import heading
from vefl_sim.analysis.figures.plot import Curves, pictures, require_matplotlib
from vefl_sim.analysis.figures.reference import require_lines, with_reference
from vefl_sim.analysis.figures.request import Request, request_from
from vefl_sim.core.errors import BadInput, CannotWrite
from vefl_sim.core.files import whole
from vefl_sim.sweep import paired
from vefl_sim.sweep.points import Point, Sweep
from vefl_sim.sweep.results.store import Store

_OF_LEARNING = ("accuracy", "failure-rate", "table")
_DIFFERENCES = ("panel", "line", "reference", "figure", "pairs", "difference", "half_width", "differs")


class NothingToDraw(BadInput):
    """A figure none of whose points is there."""


@dataclass(frozen=True)
class Drawing:
    """What was drawn, from what, and where it is."""

    name: str
    request: Request
    groups: tuple[Group, ...]
    marks: pd.DataFrame  # the curves where the request marks them
    scalars: pd.DataFrame  # one row per panel, line and seed
    differences: pd.DataFrame
    files: tuple[Path, ...]
    text: str = ""  # the table, if it is one
    problems: tuple[str, ...] = ()  # of stored results that cannot be read

    @property
    def stale(self) -> list[Point]:
        """The points whose results the code has changed since."""
        pairs = [(point, group.runs.get(point.seed)) for group in self.groups for point in group.points]
        return [point for point, run in pairs if run and run.stale]


def require_drawable(sweep: Sweep) -> None:
    """Whether its [figure] can be drawn once there are runs: better said before them."""
    _planned(sweep)


def draw_figure(sweep: Sweep, out: Path, folder: Path | None = None, store: Store | None = None) -> Drawing:
    """From the runs in `out` that are done, or else from stored results, into `folder` or out/figures/<name>."""
    request, plan = _planned(sweep)
    found = groups(sweep, plan, ResultSources(out, store, request.kind in _OF_LEARNING))
    if not any(group.runs for group in found):
        stored = f", and no result in {store.folder} is of one of them" if store is not None else ""
        raise NothingToDraw(
            f"{sweep.name}: none of its {len(sweep.points)} points is done in {out}{stored}: run its file with "
            "python -m vefl_sim sweep first, with the same --set, --seeds and --out."
        )
    scalars = _scalars(found, request)
    differences = _differences(scalars)
    content: dict[str, bytes] = {}
    marks, text = pd.DataFrame(), ""
    if request.kind == "table":
        _require_learning(sweep, scalars["value"])
        table = grid(found, [heading(dimension.key, request.labels) for dimension in plan.panels], request)
        text = table.markdown()
        content |= {".csv": _csv(table.csv_rows()), ".md": text.encode(), ".tex": table.latex().encode()}
    else:
        require_matplotlib()
        rows = curves(found, request)
        _require_learning(sweep, rows["mean"])
        known = [(", ".join(group.panel), group.line) for group in found]
        marks = with_reference(at_marks(rows, request.marks), request, known)
        drawn = pictures(Curves(rows, found, request, _x_name(plan), marks))
        content |= {f".{ending}": picture for ending, picture in drawn.items()} | {".csv": _csv(rows)}
        content |= {"_marks.csv": _csv(marks)} if len(marks) else {}
    content["_differences.csv"] = _csv(differences)
    files = _write(content, sweep.name, folder or out / "figures" / sweep.name)
    problems = () if store is None else tuple(store.problems)
    return Drawing(sweep.name, request, tuple(found), marks, scalars, differences, tuple(files), text, problems)


def missing(drawing: Drawing, out: Path) -> Iterator[str]:
    """The points that are not in it, and what is known of them."""
    for group in drawing.groups:
        for point in group.points:
            if point.seed not in group.runs:
                run = point.run(out)
                state = run.state if run else "not begun"
                yield f"{point.title} ({'damaged: move it away' if state == 'done' else state})"


def _planned(sweep: Sweep) -> tuple[Request, Layout]:
    """What its [figure] asks for, and whether that goes with the sweep."""
    request = request_from(sweep.figure)
    plan = layout(sweep, request)
    require_lines(request, names(sweep, plan))
    return request, plan


def _x_name(plan: Layout) -> str:
    return heading(plan.x.key, plan.labels) if plan.x else ""


def _require_learning(sweep: Sweep, values: pd.Series) -> None:
    if values.isna().all():
        raise BadInput(
            f"{sweep.name}: its runs have no accuracy, because nothing is learnt in them (learning.kind), and no other "
            'value for this figure.kind: choose another, for example "cost", "p_suc", "sojourn" or "total-cost".'
        )


def _scalars(found: Sequence[Group], request: Request) -> pd.DataFrame:
    rows = [
        {"panel": ", ".join(group.panel), "line": group.title, "seed": seed, "value": scalar(run, request)}
        for group in found
        for seed, run in group.runs.items()
    ]
    return pd.DataFrame(rows).assign(figure=SCALARS[request.kind])


def _differences(scalars: pd.DataFrame) -> pd.DataFrame:
    """Of every line to the first one of its panel, paired by seed."""
    name = scalars["figure"].iloc[0]
    found = []
    for panel, own in scalars.groupby("panel", sort=False):
        indexed = own.rename(columns={"line": "variant", "value": name}).set_index(["variant", "seed"])[[name]]
        found.append(paired.differences(indexed).rename(columns={"variant": "line"}).assign(panel=panel))
    return pd.concat(found, ignore_index=True)[list(_DIFFERENCES)]


def _csv(rows: pd.DataFrame) -> bytes:
    return str(rows.to_csv(index=False)).encode()


def _write(content: dict[str, bytes], name: str, folder: Path) -> Iterator[Path]:
    """Everything is ready before the first file is touched, and each appears whole."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for ending, data in content.items():
            path = folder / f"{name}{ending}"
            with whole(path) as partial:
                partial.write_bytes(data)
            yield path
    except (OSError, CannotWrite) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        reason = getattr(cause, "strerror", None) or cause
        raise BadInput(f"{folder} cannot be written ({reason}): choose another --to.") from None
