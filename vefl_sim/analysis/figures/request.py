"""The [figure] table of a sweep: its keys, and one error sentence per problem."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.complaints import complaints_about, nearest
from vefl_sim.experiment.fields import Share, Table

MeasureKind = Literal[
    "accuracy", "loss", "failure-rate", "delivered", "sojourn", "delay", "p_suc", "cost", "energy", "total-cost",
    "total-energy",
]  # fmt: skip
FigureKind = Literal[MeasureKind, "table", "effects"]
Band = Literal["ci95", "sd", "minmax", "none"]
_DISTRIBUTIONS = ("sojourn", "delay", "p_suc", "cost", "energy")
_TOTALS = ("total-cost", "total-energy")


def _flat(labels: Any) -> Any:
    """Undo that TOML reads radio.prbs = "…" as a table in a table."""
    tables = {name: own for name, own in labels.items() if isinstance(own, dict)} if isinstance(labels, dict) else {}
    inner = {f"{name}.{key}": text for name, table in tables.items() for key, text in table.items()}
    return {key: text for key, text in labels.items() if key not in tables} | inner if tables else labels


def _ordered(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] >= bounds[1]:
        raise ValueError(f"the lower end {bounds[0]:g} must be below the upper end {bounds[1]:g}")
    return bounds


def _with_placeholder(labels: dict[str, str]) -> dict[str, str]:
    for key, text in labels.items():
        if text.count("{}") != 1:
            raise ValueError(f'the label of {key} needs one {{}} for the value, for example "Z = {{}}"')
    return labels


Names = Annotated[list[str], BeforeValidator(lambda names: [names] if isinstance(names, str) else names)]
Ends = Annotated[tuple[float, float], Field(strict=False), AfterValidator(_ordered)]


class Request(Table):
    """A [figure] table: the kind of figure, as in the paper, and how the points of the sweep are arranged in it."""

    kind: FigureKind = "accuracy"
    measure: MeasureKind = "accuracy"
    """What a table or the effects of swept keys are about."""
    band: Band = "sd"
    """What is shown around a mean over seeds: Student's 95 % confidence interval, the standard deviation, the least and
    largest value, or nothing."""
    compare_to: str = ""
    """The line to which the others are compared, paired by seed. Default: the first of each panel. With band = "ci95"
    the intervals of the others are those of their differences to it."""
    detect: Annotated[float, Field(gt=0)] | None = None
    """A difference between lines: if none was found, the report tells how many seeds are needed to find this one."""
    title: str = ""
    lines: Names | None = None
    """One line per value: "variants", or swept keys. Default: the variants, or else the first swept key."""
    panels: Names | None = None
    """One panel per value: "variants", or swept keys."""
    rows: Names | None = None
    """One row of a table per value: "variants", or swept keys."""
    x: str = ""
    """The x-axis: "round", "time" or a swept key. Default: the round; with totals the first swept key; a distribution
    has its own x-axis."""
    x_scale: Literal["linear", "log"] = "linear"
    x_range: Ends | None = None
    y_range: Ends | None = None
    threshold: Share = 0.7
    """For failure-rate: a run fails in a round if its accuracy is below this."""
    count: Literal["ordered", "with-ineligible", "rounds", "rounds-with-ineligible", "paper"] = "ordered"
    """Over what p_suc is counted: CVs with an order, these and ineligible CVs (as 0), or means per round of either;
    "paper": means per round, over the selected CVs if the scheme selects CVs, else with ineligible CVs as 0."""
    marks: list[float] = Field(default_factory=list)
    """Positions on the x-axis at which the values are printed."""
    reference: dict[str, list[Annotated[float, Field(allow_inf_nan=True)]]] = Field(default_factory=dict)
    """By line: reference values at the marks, drawn together with our values; nan where there is none."""
    labels: Annotated[dict[str, str], BeforeValidator(_flat), AfterValidator(_with_placeholder)] = Field(
        default_factory=dict
    )
    """By key: the label of its values, for example "Z = {}"."""

    @property
    def against_key(self) -> bool:
        """Whether the x-axis is a swept key, with one number per run."""
        return self.x not in ("", "round", "time") or (not self.x and self.kind in _TOTALS)

    @property
    def is_distribution(self) -> bool:
        """Whether the figure shows the CDF or CCDF of samples."""
        return not self.x and self.kind in _DISTRIBUTIONS

    @property
    def has_bars(self) -> bool:
        """Whether the figure has bars, from 0: totals against a swept key."""
        return self.against_key and self.kind in _TOTALS

    @property
    def has_rounds(self) -> bool:
        """Whether "round" and "time" are possible x-axes; stored results do not say when a CV had which value."""
        return self.kind not in ("sojourn", "delay", "table", "effects")

    @property
    def has_band(self) -> bool:
        """Whether a mean has something around it; the failures of a round are zeros and ones."""
        return self.kind != "failure-rate" or self.against_key

    @property
    def measured(self) -> "Request":
        """The same request for the measure itself, if this one is for a table or effects."""
        return self.model_copy(update={"kind": self.measure}) if self.kind in ("table", "effects") else self

    @property
    def needs_learning(self) -> bool:
        """Whether the measure is about the model."""
        return self.measured.kind in ("accuracy", "loss", "failure-rate")


_LINES = {"kind", "labels", "lines", "band", "compare_to", "detect"}
_OF_KIND = {"table": _LINES | {"rows", "measure"}, "effects": {"kind", "labels", "measure", "band", "title"}}
_PICTURE = _LINES | {"title", "panels", "x", "x_scale", "x_range", "y_range", "marks", "reference"}
_OF_MEASURE = {"failure-rate": {"threshold"}, "p_suc": {"count"}}


def request_from(table: Mapping[str, Any]) -> Request:
    """Parse a [figure] table and fill in all defaults; raises an ExperimentError with one sentence per problem."""
    known = list(Request.model_fields)
    problems = [
        f"figure.{key} is not a known key of [figure]; the nearest is figure.{nearest(key, known)}."
        for key in table
        if key not in known
    ]
    try:
        request = Request.model_validate({key: value for key, value in table.items() if key in known})
        problems += () if problems else _conflicts(request)
    except ValidationError as error:
        problems += complaints_about({**problem, "loc": ("figure", *problem["loc"])} for problem in error.errors())
    if problems:
        raise ExperimentError(problems)
    return request


def _conflicts(request: Request) -> Iterator[str]:
    """Keys that have no effect or contradict each other, as sentences."""
    effective = _OF_KIND.get(request.kind, _PICTURE) | _OF_MEASURE.get(request.measured.kind, set())
    if request.kind not in _OF_KIND:
        effective = effective - _without_effect(request)
    idle = sorted(request.model_fields_set - effective)
    for key in idle:
        x = f' and figure.x = "{request.x}"' if request.x and key != "x" else ""
        yield f'figure.{key} has no effect with figure.kind = "{request.kind}"{x}: remove it.'
    if idle:
        return
    if request.x_scale == "log" and request.x_range and request.x_range[0] <= 0:
        yield "figure.x_range must begin above 0, because its axis is logarithmic: change it."
    for line, values in request.reference.items():
        if len(values) != len(request.marks):
            yield (
                f"figure.reference: {line!r} has {len(values)} values, but figure.marks has {len(request.marks)}: "
                "write one value for each mark, and nan where there is none."
            )


def _without_effect(request: Request) -> set[str]:
    """The keys of a picture that change nothing with this kind and x-axis."""
    scalable = request.kind != "p_suc" if request.is_distribution else request.against_key and not request.has_bars
    return (
        (set() if request.has_band else {"band"})
        | ({"x"} if request.x in ("round", "time") and not request.has_rounds else set())
        | ({"x_range", "reference"} if request.has_bars else set())
        | (set() if scalable else {"x_scale"})
    )
