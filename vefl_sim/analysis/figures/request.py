"""What a [figure] asks for, or one clear sentence per problem."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.complaints import complaints_about
from vefl_sim.experiment.fields import Share, Table

FigureKind = Literal["accuracy", "failure-rate", "sojourn", "p_suc", "cost", "total-cost", "table"]


def _listed(names: Any) -> Any:
    return [names] if isinstance(names, str) else names


def _flat(labels: Any) -> Any:
    """TOML reads radio.prbs = "…" as a table in a table."""
    if not isinstance(labels, dict):
        return labels
    inner = {
        f"{name}.{key}": text
        for name, table in labels.items()
        if isinstance(table, dict)
        for key, text in table.items()
    }
    return inner | {key: text for key, text in labels.items() if not isinstance(text, dict)}


def _ordered(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] >= bounds[1]:
        raise ValueError(f"the lower end {bounds[0]:g} is not below the upper end {bounds[1]:g}")
    return bounds


def _with_places(labels: dict[str, str]) -> dict[str, str]:
    for key, text in labels.items():
        if text.count("{}") != 1:
            raise ValueError(f'the label of {key} needs one {{}} where the value goes, for example "Z = {{}}"')
    return labels


Names = Annotated[list[str], BeforeValidator(_listed)]
Ends = Annotated[tuple[float, float], Field(strict=False), AfterValidator(_ordered)]


class Request(Table):
    """A [figure]: which of the paper's kinds, and how the points of the sweep are spread over it."""

    kind: FigureKind = "accuracy"
    title: str = ""
    lines: Names | None = None
    """"variants", or swept keys; if not given, the variants, or the first key."""
    panels: Names | None = None
    """The same, one panel for each."""
    rows: Names | None = None
    """The same, for a table."""
    x: str = ""
    """"round" or "time"; with total-cost also a swept key."""
    x_scale: Literal["linear", "log"] = "linear"
    x_range: Ends | None = None
    y_range: Ends | None = None
    threshold: Share = 0.7
    """Of a failure rate: the accuracy that is not to be missed."""
    count: Literal["ordered", "with-ineligible", "rounds", "rounds-with-ineligible", "paper"] = "ordered"
    """What p_suc is counted over: CVs with an order, these and the ineligible as 0, or means of rounds of both;
    "paper": means of rounds, over the selected CVs where CVs are selected, and else with the ineligible as 0."""
    marks: list[float] = Field(default_factory=list)
    """Where on the x-axis the values are printed."""
    reference: dict[str, list[Annotated[float, Field(allow_inf_nan=True)]]] = Field(default_factory=dict)
    """By line: the values of somebody else at the marks, to be drawn beside ours; nan where there is none."""
    labels: Annotated[dict[str, str], BeforeValidator(_flat), AfterValidator(_with_places)] = Field(
        default_factory=dict
    )
    """How the value of a key is written, for example "Z = {}"."""


_ALL = {"kind", "title", "lines", "labels"}
_PICTURE = _ALL | {"panels", "x_range", "y_range"}
_USED: dict[str, set[str]] = {
    "accuracy": _PICTURE | {"x", "marks", "reference"},
    "failure-rate": _PICTURE | {"x", "marks", "threshold"},
    "sojourn": _PICTURE | {"marks", "x_scale", "reference"},
    "p_suc": _PICTURE | {"marks", "count", "reference"},
    "cost": _PICTURE | {"marks", "x_scale", "reference"},
    "total-cost": _PICTURE | {"x", "marks", "reference"},
    "table": _ALL - {"title"} | {"rows"},
}


def request_from(table: Mapping[str, Any]) -> Request:
    """The request in a [figure], with every default."""
    try:
        request = Request.model_validate(dict(table))
    except ValidationError as error:
        raise ExperimentError([*_problems(error)]) from None
    if useless := [*_useless(request)]:
        raise ExperimentError(useless)
    return request


def nearest(word: str, known: list[str]) -> str:
    """Of the known words the one that is most alike."""
    return get_close_matches(word, known, n=1, cutoff=0.0)[0]


def _problems(error: ValidationError) -> Iterator[str]:
    found = error.errors()
    for one in found:
        if one["type"] == "extra_forbidden":
            key = str(one["loc"][0])
            known = nearest(key, list(Request.model_fields))
            yield f"figure.{key} is not a known key of [figure]; the nearest is figure.{known}."
    others = [one for one in found if one["type"] != "extra_forbidden"]
    yield from complaints_about({**one, "loc": ("figure", *one["loc"])} for one in others)


def _useless(request: Request) -> Iterator[str]:
    for key in sorted(request.model_fields_set - _USED[request.kind]):
        yield f'figure.{key} has no effect with figure.kind = "{request.kind}": remove it.'
    if request.kind in ("accuracy", "failure-rate") and request.x not in ("", "round", "time"):
        yield f'figure.x = "{request.x}": with figure.kind = "{request.kind}" it must be "round" or "time".'
    if request.kind == "total-cost" and request.x not in ("round", "time"):
        if request.x_range:
            yield 'figure.x_range has no effect on bars: remove it, or choose figure.x = "time".'
        if request.reference:
            yield 'figure.reference is for lines, not for bars: remove it, or choose figure.x = "round" or "time".'
    for line, values in request.reference.items() if "reference" in _USED[request.kind] else ():
        if len(values) != len(request.marks):
            yield (
                f"figure.reference: {line!r} has {len(values)} values, and figure.marks {len(request.marks)}: write "
                "one for each mark, and nan where there is none."
            )
    if request.x_scale == "log" and request.x_range and request.x_range[0] <= 0:
        yield f"figure.x_range begins at {request.x_range[0]:g}, which a logarithmic axis does not have: begin above 0."
