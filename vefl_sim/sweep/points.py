"""The points of a sweep: one experiment for each combination of variant, values and seed.

A point is named by its configuration, not by its sweep, so sweeps with a point in common share its run.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.progress import counted
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.fields import Settings, setting_texts
from vefl_sim.experiment.toml import ExperimentFile, override, read_experiment
from vefl_sim.experiment.unused_keys import without_unused_environment
from vefl_sim.records.identity import Identity
from vefl_sim.records.run_directory import Run, existing_run
from vefl_sim.sweep.axes import Axis, axes
from vefl_sim.sweep.seeds import chosen_seeds
from vefl_sim.sweep.variants import Variant, experiment_of, pop_variants

_MAX_POINTS = 100_000  # more are probably a mistyped list


@dataclass(frozen=True)
class Point:
    """One experiment of a sweep."""

    label: str | None  # of its [[compare]]; None without variants
    values: Mapping[str, Any]  # of the swept keys, by table.key
    experiment: Experiment
    unused: Mapping[str, str] = field(default_factory=dict, compare=False)  # keys without effect here, with reasons

    @property
    def seed(self) -> int:
        """Seed of traffic, channels, data and initial model, which points with the same seed share."""
        return self.experiment.run.seed

    @cached_property
    def identity(self) -> Identity:
        """What identifies the run of this point."""
        return Identity(self.experiment)

    @property
    def digest(self) -> str:
        """Digest of the configuration; points with the same digest have the same run."""
        return self.identity.configuration

    @property
    def title(self) -> str:
        """Label, swept values and seed, which distinguish the point from the others."""
        label = [] if self.label is None else [self.label]
        return ", ".join([*label, *(f"{key} = {value}" for key, value in self.values.items()), f"seed {self.seed}"])

    def run(self, out: Path) -> Run | None:
        """The run directory of the point below `out`, finished or not; None if there is none."""
        return existing_run(self.identity, out)


@dataclass(frozen=True)
class Sweep:
    """All points of a file, ordered by seed first, so that early results cover all variants and values."""

    name: str
    points: tuple[Point, ...]
    axes: tuple[Axis, ...] = ()
    figure: Mapping[str, Any] = field(default_factory=dict)  # the table [figure] of the file

    @property
    def labels(self) -> list[str]:
        """Labels of the variants, in the order of the file."""
        return list(dict.fromkeys(point.label for point in self.points if point.label is not None))

    @property
    def seeds(self) -> list[int]:
        """Seeds of the points, in the order of the file."""
        return list(dict.fromkeys(point.seed for point in self.points))


def load_sweep(file: str | Path | ExperimentFile, settings: Settings = (), seeds: Sequence[int] | None = None) -> Sweep:
    """Read a file with a [sweep], or with [[compare]], or both; every variant is swept.

    `settings` ({"radio.prbs": 5} or ["radio.prbs=5"]) override keys of all points, or lists of [sweep] itself; `seeds`
    override those of the file, which may then be that of one experiment.
    """
    settings = setting_texts(settings)
    file = file if isinstance(file, ExperimentFile) else read_experiment(file)
    file = file if seeds is None else compared_with_itself(file)
    tables = file.copy_of_tables()
    _require_sweep(file.path, tables)
    variants = pop_variants(tables, settings)
    override(tables, settings)
    swept, figure = _table(tables, "sweep"), _table(tables, "figure")
    chosen = chosen_seeds(tables, swept, variants, given=seeds, settings=settings)
    swept_axes = axes(swept)
    _require_set_once(swept_axes, variants, settings)
    count = len(chosen or [1]) * max(1, len(variants)) * prod(len(axis.steps) for axis in swept_axes)
    if count > _MAX_POINTS:
        raise ExperimentError(
            f"{file.path}: {count} points are more than the maximum of {_MAX_POINTS}: shorten a list."
        )
    points = tuple(counted(_points(tables, swept_axes, variants, chosen), "checking the points", count))
    _require_effect(points)
    return Sweep(_name(tables), points, tuple(swept_axes), figure)


def compared_with_itself(file: ExperimentFile) -> ExperimentFile:
    """The file of one experiment as a comparison with one entry, whose runs differ in their seeds; others unchanged."""
    if {"compare", "sweep"} & set(file.tables):
        return file
    return replace(file, tables={**file.tables, "compare": [{"label": file.path.stem}]})


def _require_sweep(path: Path, tables: Mapping[str, Any]) -> None:
    if "sweep" not in tables and "compare" not in tables:
        raise ExperimentError(
            f"{path} has no [sweep]: add one, for example sweep.seeds = [1, 2, 3], or run it by itself with: "
            f"python -m vefl_sim {path}"
        )


def _table(tables: dict[str, Any], name: str) -> dict[str, Any]:
    table = tables.pop(name, {})
    if not isinstance(table, dict):
        raise ExperimentError(f"[{name}] must be a table.")
    return dict(table)


def _require_set_once(swept_axes: list[Axis], variants: list[Variant], settings: Sequence[str]) -> None:
    """Refuse a swept key that a variant or a setting sets, too."""
    swept = {key for axis in swept_axes for key in axis.keys}
    problems = [
        f"compare, {variant['label']!r}: {key} is also swept: keep it in one of the two places."
        for variant in variants
        for key in swept
        if key.partition(".")[2] in variant.get(key.partition(".")[0], {})
    ]
    for setting in settings:
        key = setting.partition("=")[0].strip()
        if key in swept:
            problems.append(f"--set {key} has no effect, because it is swept: set sweep.{key} to a list of one value.")
    if problems:
        raise ExperimentError(problems)


def _points(
    tables: dict[str, Any], swept_axes: list[Axis], variants: list[Variant], seeds: list[int] | None
) -> Iterator[Point]:
    repeats = [{}] if seeds is None else [{"run.seed": seed} for seed in seeds]
    for repeat, variant in product(repeats, variants or [{}]):
        for steps in product(*(axis.values() for axis in swept_axes)):
            values = {key: value for step in steps for key, value in step.items()}
            yield _point(_with_values(tables, values | repeat), variant, values)


def _with_values(tables: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    changed = {name: dict(table) if isinstance(table, dict) else table for name, table in tables.items()}
    for key, value in values.items():
        name, _, inner = key.partition(".")
        changed.setdefault(name, {})[inner] = value
    return changed


def _point(tables: dict[str, Any], variant: Variant, values: dict[str, Any]) -> Point:
    try:
        experiment, unused = experiment_of(tables, variant)
    except ExperimentError as error:
        listed = ", ".join(f"{key} = {value}" for key, value in values.items())
        where = f"sweep, {listed}: " if listed else ""
        raise ExperimentError([where + problem for problem in error.problems]) from None
    return Point(variant.get("label"), values, _named(without_unused_environment(experiment)), unused)


def _require_effect(points: Sequence[Point]) -> None:
    """Refuse a key without effect in all points; one that has an effect in some of them is accepted."""
    if problems := [reason for key, reason in points[0].unused.items() if all(key in point.unused for point in points)]:
        raise ExperimentError(problems)


def _named(experiment: Experiment) -> Experiment:
    """The experiment named by scheme, data set and seed, so that every sweep gives the same point the same name."""
    words = f"{experiment.scheme.kind} {experiment.data.kind}".split()
    plain = [re.sub(r"[^a-z0-9]+", "-", word.rpartition(":")[2].lower()).strip("-") for word in words]
    name = "-".join([*filter(None, plain), f"s{experiment.run.seed}"])
    return experiment.model_copy(update={"run": experiment.run.model_copy(update={"name": name[:100]})})


def _name(tables: Mapping[str, Any]) -> str:
    run = tables.get("run")
    return str(run.get("name", "sweep")) if isinstance(run, dict) else "sweep"
