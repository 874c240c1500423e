"""A figure of a sweep: drawn, written, and told in a few lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from vefl_sim import paired
from vefl_sim.atomic import whole
from vefl_sim.errors import BadInput, CannotWrite
from vefl_sim.figures.curves import at_marks, curves
from vefl_sim.figures.grid import grid
from vefl_sim.figures.layout import Group, Layout, groups, layout
from vefl_sim.figures.measures import SCALARS, scalar
from vefl_sim.figures.names import heading
from vefl_sim.figures.plot import Curves, pictures, require_matplotlib
from vefl_sim.figures.request import Request, request_from
from vefl_sim.sweep.points import Sweep

_DIFFERENCES = ("panel", "line", "reference", "figure", "pairs", "difference", "half_width", "differs")


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


def check(sweep: Sweep) -> None:
    """Whether its [figure] can be drawn once there are runs: better said before them."""
    request = request_from(sweep.figure)
    layout(sweep, request)


def draw(sweep: Sweep, out: Path, folder: Path | None = None) -> Drawing:
    """From the runs in `out` that are done, into `folder` or out/figures/<name>."""
    request = request_from(sweep.figure)
    plan = layout(sweep, request)
    found = groups(sweep, plan, out)
    if not any(group.runs for group in found):
        raise BadInput(
            f"{sweep.name}: none of its {len(sweep.points)} points is done in {out}: run its file with python -m "
            "vefl_sim sweep first, with the same --set, --seeds and --out."
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
        marks = at_marks(rows, request.marks)
        drawn = pictures(Curves(rows, found, request, _x_name(plan)))
        content |= {f".{ending}": picture for ending, picture in drawn.items()} | {".csv": _csv(rows)}
        content |= {"_marks.csv": _csv(marks)} if len(marks) else {}
    content["_differences.csv"] = _csv(differences)
    files = _write(content, sweep.name, folder or out / "figures" / sweep.name)
    return Drawing(sweep.name, request, tuple(found), marks, scalars, differences, tuple(files), text)


def missing(drawing: Drawing, out: Path) -> Iterator[str]:
    """The points that are not in it, and what is known of them."""
    for group in drawing.groups:
        for point in group.points:
            if point.seed not in group.runs:
                run = point.run(out)
                state = run.state if run else "not begun"
                yield f"{point.title} ({'damaged: move it away' if state == 'done' else state})"


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
