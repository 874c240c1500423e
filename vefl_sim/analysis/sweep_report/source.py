"""What a page reads of a sweep or comparison: its points from its table, and what their runs measured."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from os.path import isdir
from pathlib import Path
from typing import Any

import pandas as pd

from vefl_sim.analysis.figures.measures import BY_METRIC, metric_in, scalar
from vefl_sim.analysis.figures.names import with_symbol
from vefl_sim.analysis.figures.request import FigureKind, Request
from vefl_sim.analysis.verify.verification import blaming_damage
from vefl_sim.core.errors import BadInput, VeflError, first_line, printable
from vefl_sim.experiment.toml import read_experiment
from vefl_sim.learning.metric import Metric
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.comparison import SEEDS
from vefl_sim.sweep.index import INDEX, IndexEntry, read_table
from vefl_sim.sweep.results.result import RunMeasurements

VARIANT = "variant"
KINDS: tuple[FigureKind, ...] = ("accuracy", "loss", "delivered", "p_suc", "delay", "cost", "energy")
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
    numbers: Mapping[str, float] = field(default_factory=dict)  # by kind


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

    @property
    def versions(self) -> list[str]:
        """The versions of vefl_sim, with digests of their sources, that wrote the table."""
        return [_text(version) for version in self._table.get("version", pd.Series(dtype=str)).unique()]

    @cached_property
    def parameters(self) -> list[str]:
        """The columns that distinguish points: the variant and the swept keys."""
        columns = [str(name) for name in self._table.columns]
        if self.is_comparison:
            return [VARIANT] if VARIANT in columns else []
        return [name for name in columns if name not in _ORIGIN]

    @property
    def choices(self) -> dict[Path, str]:
        """The run directories of the points, each with its parameters and its seed in words; the runs are not read."""
        varying = [key for key in self.parameters if self._table[key].nunique(dropna=False) > 1]
        choices: dict[Path, str] = {}
        for row in self._table.to_dict("records"):
            name = _text(row.get("run"))
            texts = {key: value_text(_value(row[key])) for key in varying}
            words = [text if key == VARIANT else f"{key}={text}" for key, text in texts.items()]
            if _is_name(name) and (self._out / name / "resolved.toml").is_file():
                choices.setdefault(self._out / name, ", ".join([*words, f"seed {_value(row.get('seed'))}"]))
        return choices

    @cached_property
    def points(self) -> list[PagePoint]:
        """All points, in the order of the table; a run that several of them share is read once."""
        read = cache(_read_run)
        return [self._point(row, read) for row in self._table.to_dict("records")]

    @cached_property
    def groups(self) -> dict[str, list[PagePoint]]:
        """The points of each combination of parameters, by its title; they differ in their seeds."""
        groups: dict[str, list[PagePoint]] = {}
        for point in self.points:
            groups.setdefault(self.title(point), []).append(point)
        return groups

    def title(self, point: PagePoint, without: frozenset[str] = frozenset()) -> str:
        """The parameters of a point that differ between points, in words, without some of them."""
        keys = [key for key in self.varying if key not in without]
        return ", ".join(self.label(key, point) for key in keys) or self.name

    def label(self, key: str, point: PagePoint) -> str:
        """The value of a parameter with its symbol; a part that it may name is not loaded."""
        text = value_text(point.parameters[key])
        return text if key == VARIANT else with_symbol(key, text, {})

    @cached_property
    def varying(self) -> list[str]:
        """The parameters that are not the same for all points."""
        return [key for key in self.parameters if len({point.parameters[key] for point in self.points}) > 1]

    @cached_property
    def by_seed(self) -> pd.DataFrame:
        """One row per group and seed of the finished points, one column per measure that any of them has."""
        done = [(title, point) for title, own in self.groups.items() for point in own if point.measured]
        index = pd.MultiIndex.from_tuples([(title, point.seed) for title, point in done], names=["variant", "seed"])
        table = pd.DataFrame([point.numbers for _, point in done], index=index if done else None, columns=list(KINDS))
        known = table[~table.index.duplicated()].dropna(axis=1, how="all")
        return known if self.metric else known.drop(columns=[kind for kind in BY_METRIC if kind in known])

    @cached_property
    def metric(self) -> Metric | None:
        """The metric of all finished runs that have learnt; None if there is none, or if they have different ones."""
        return metric_in(point.measured for point in self.points if point.measured)

    def _point(self, row: Mapping[Any, Any], read: "Callable[[Path], _RunRead]") -> PagePoint:
        name, error = _text(row.get("run")), _text(row.get("error"))
        point = PagePoint(
            {key: _value(row[key]) for key in self.parameters},
            *(row.get("seed"), name, _text(row.get("status")) or "missing", error),
        )
        if _is_name(name) and isdir(self._out / name):
            state, fault, measured, numbers = read(self._out / name)
            return replace(point, state=state, error=fault or error, measured=measured, numbers=numbers)
        return replace(point, state="missing") if point.state == "done" else point  # its directory is not here


_RunRead = tuple[str, str, RunMeasurements | None, dict[str, float]]
"""State of a run, what is wrong with it, and if it is done its measurements and measures."""


def _read_run(path: Path) -> _RunRead:
    try:
        run = Run(path)
        if not run.is_done:
            return run.state, "", None, {}
        measured = RunMeasurements(run)
        with blaming_damage(run):
            return "done", "", measured, {kind: scalar(measured, Request(kind=kind)) for kind in KINDS}
    except VeflError as problem:
        return "damaged", first_line(problem), None, {}


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
