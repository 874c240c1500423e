"""What a page reads of a sweep or comparison: its points from its table, and what their runs measured."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from os.path import isdir
from pathlib import Path
from typing import Any

import pandas as pd

from vefl_sim.analysis.figures.chart import Chart
from vefl_sim.analysis.figures.layout import Group
from vefl_sim.analysis.figures.measures import BY_METRIC, scalar
from vefl_sim.analysis.figures.names import axis_name, legend_title, with_symbol
from vefl_sim.analysis.figures.request import FigureKind, Request
from vefl_sim.analysis.verify.verification import blaming_damage
from vefl_sim.core.errors import BadInput, VeflError, first_line, printable
from vefl_sim.experiment.toml import read_experiment
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.comparison import SEEDS
from vefl_sim.sweep.index import INDEX, IndexEntry, read_table
from vefl_sim.sweep.results.result import RunMeasurements

VARIANT = "variant"
_KINDS: tuple[FigureKind, ...] = ("accuracy", "loss", "delivered", "p_suc", "delay", "cost", "energy")
"""The measures on a page, as kinds of figures."""
_ORIGIN = {*asdict(IndexEntry()), "seed", "digest", "set", "version"}
_MAX_NAME = 80  # characters of a variant or value
_MAX_NUMBER = 1e15  # of a value; larger ones, and what is not finite, are shown as text


@dataclass(frozen=True)
class PagePoint:
    """One point of the sweep: its parameters, and its run if that can be read."""

    parameters: Mapping[str, Any]  # variant and swept keys
    seed: Any
    name: str  # of its run directory; empty if it never started
    state: str
    error: str = ""
    measured: RunMeasurements | None = None  # None unless it is done


class SweepSource:
    """The points of a sweep (index.csv) or comparison (seeds.csv), and their runs."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.is_comparison = file.name == SEEDS
        folder = file.resolve().parent
        self.name = folder.name
        self._out = folder.parent if self.is_comparison else folder.parent.parent
        table = read_table(file, {"run", "seed"}, "run the sweep again")
        if not len(table):
            raise BadInput(f"{file} is not the table of a sweep or comparison: it is empty; run the sweep again.")
        settings = table["set"].map(_text) if "set" in table else pd.Series("", table.index)
        self.settings = settings.iloc[0]
        self.others = int((settings != self.settings).sum())  # points of other settings of the same file
        self._table = table[settings == self.settings].dropna(axis=1, how="all")
        columns = [str(name) for name in self._table.columns]
        named = [VARIANT] if self.is_comparison else [name for name in columns if name not in _ORIGIN]
        self.parameters = [name for name in named if name in columns]  # the variant and the swept keys
        self.versions = [_text(version) for version in self._table.get("version", pd.Series(dtype=str)).unique()]

    @cached_property
    def varying(self) -> list[str]:
        """The parameters that are not the same for all points."""
        return [key for key in self.parameters if self._table[key].map(_value).nunique() > 1]

    @property
    def choices(self) -> dict[Path, str]:
        """The run directories of the points, each with its parameters and its seed in words; the runs are not read."""
        choices: dict[Path, str] = {}
        for row in self._table.to_dict("records"):
            name = _text(row.get("run"))
            texts = {key: value_text(_value(row[key])) for key in self.varying}
            words = [text if key == VARIANT else f"{key}={text}" for key, text in texts.items()]
            if _is_name(name) and (self._out / name / "resolved.toml").is_file():
                choices.setdefault(self._out / name, ", ".join([*words, f"seed {_value(row.get('seed'))}"]))
        return choices

    @cached_property
    def points(self) -> list[PagePoint]:
        """All points, in the order of the table; a run that several of them share is read once."""
        read, points = cache(_read_run), []
        for row in self._table.to_dict("records"):
            name, state, error = (_text(row.get(column)) for column in ("run", "status", "error"))
            measured = None
            if _is_name(name) and isdir(self._out / name):
                state, fault, measured = read(self._out / name)
                error = fault or error
            elif state in ("done", ""):  # its directory is not here
                state = "missing"
            parameters = {key: _value(row[key]) for key in self.parameters}
            points.append(PagePoint(parameters, _value(row.get("seed")), name, state, error, measured))
        return points

    @cached_property
    def groups(self) -> dict[str, list[PagePoint]]:
        """The points of each combination of parameters, by its title; they differ in their seeds."""
        groups: dict[str, list[PagePoint]] = {}
        for point in self.points:
            groups.setdefault(self.title(point, self.varying), []).append(point)
        return groups

    def title(self, point: PagePoint, keys: Sequence[str]) -> str:
        """These parameters of a point in words; the name of the sweep, if there are none."""
        return ", ".join(self.label(key, point) for key in keys) or self.name

    def label(self, key: str, point: PagePoint) -> str:
        """The value of a parameter with its symbol; a part that it may name is not loaded."""
        text = value_text(point.parameters[key])
        return text if key == VARIANT else with_symbol(key, text, {})

    @cached_property
    def charts(self) -> dict[FigureKind, Chart]:
        """By measure that any run has, its numbers; lines are variants, and panels the combinations of swept keys."""
        keys = [key for key in self.varying if key != VARIANT] if VARIANT in self.varying else []
        request = Request(band="ci95")
        charts = {kind: self._chart(request, kind, [VARIANT] if keys else self.varying, keys) for kind in _KINDS}
        return {
            kind: chart
            for kind, chart in charts.items()
            if any(map(len, chart.numbers)) and (chart.metric or kind not in BY_METRIC)
        }

    @property
    def measures(self) -> list[str]:
        """The names of the measures."""
        return [chart.measure.number for chart in self.charts.values()]

    def chart(self, kind: FigureKind, x: str = "") -> Chart:
        """A measure by round, as a distribution, or against a swept key; keys that change with that name no line."""
        lines = [key for key in self.varying if not x or not self.is_function(key, x)]
        return self._chart(Request(x=x), kind, lines)

    def _chart(self, request: Request, kind: FigureKind, lines: list[str], panels: Sequence[str] = ()) -> Chart:
        x = request.x
        is_text = bool(x) and any(isinstance(point.parameters[x], str) for point in self.points)
        groups = []
        for own in self.groups.values():
            first = own[0]
            value = first.parameters[x] if x else None
            panel, line = self.title(first, panels) if panels else "", self.title(first, lines)
            runs = {point.seed: point.measured for point in own if point.measured}
            groups.append(Group(panel, line, runs, self.label(x, first) if x else "", str(value) if is_text else value))
        legend = legend_title((key for key in self.varying if key != x), {})
        return Chart(request.model_copy(update={"kind": kind}), groups, axis_name(x, {}) if x else "", legend)

    def is_function(self, key: str, of: str) -> bool:
        """Whether each value of a key has one value of the other, as in lists that vary together."""
        pairs = {(point.parameters[of], point.parameters[key]) for point in self.points}
        return key == of or (key != VARIANT and len(pairs) == len({value for value, _ in pairs}))


def _read_run(path: Path) -> tuple[str, str, RunMeasurements | None]:
    """State of a run, what is wrong with it, and if it is done its measurements."""
    try:
        run = Run(path)
        if not run.is_done:
            return run.state, "", None
        measured = RunMeasurements(run)
        with blaming_damage(run):
            for kind in _KINDS:  # reads all that the page shows
                scalar(measured, Request(kind=kind))
        return "done", "", measured
    except VeflError as problem:
        return "damaged", first_line(problem), None


def find_table(name: str, out: Path = Path("runs")) -> Path | None:
    """The table of the sweep or comparison that a folder, a TOML file or a name in `out` stands for; None if none."""
    path = Path(name)
    if path.suffix == ".toml" and path.is_file():
        tables = read_experiment(path).tables
        if not {"sweep", "compare"} & set(tables):
            raise BadInput(f"{path} is one experiment: name its run directory, or the beginning of its name in {out}.")
        run = tables.get("run")
        file = out / "sweeps" / str(run.get("name", "sweep") if isinstance(run, dict) else "sweep") / INDEX
        if not file.is_file():
            raise BadInput(f"{path} has no points in {out}: run it first, or name the folder of its sweep.")
        return file
    places = [path] if path.exists() else [out / "sweeps" / name, out / name]
    files = [folder / table for folder in places for table in (INDEX, SEEDS)]
    return next((file for file in files if file.is_file()), None)


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value)


def _is_name(name: str) -> bool:
    """Whether a text names something in a folder, and not elsewhere."""
    return Path(name).name == name not in ("", "..")


def value_text(value: Any) -> str:
    """A value of a parameter as text."""
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _value(value: Any) -> Any:
    """A number as it is, or else a short text without control characters."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MAX_NUMBER:
        return int(value) if value == int(value) else value
    text = printable(_text(value))
    return text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 1]}…"
