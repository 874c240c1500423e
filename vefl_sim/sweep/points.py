"""The points of a sweep: one experiment for each combination of variant, values and seed.

A point is named by what is in it, not by its sweep, so that sweeps that have a point in common share its run.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.rules import contradictions
from vefl_sim.experiment.toml import override, read_experiment, validated
from vefl_sim.experiment.unused_keys import ignored_keys, without_ignored
from vefl_sim.records.identity import config_digest
from vefl_sim.records.run_directory import Run, existing_run
from vefl_sim.sweep.axes import Axis, axes
from vefl_sim.sweep.seeds import check_seeds, misplaced_seeds, rival_seeds
from vefl_sim.sweep.variants import require_effect, rival_setting, taken_variants, variant_of

_MOST = 100_000  # a mistyped list is likelier than more


@dataclass(frozen=True)
class Point:
    """One run of a sweep."""

    label: str | None  # of its [[compare]]
    values: Mapping[str, Any]  # of the keys that are swept, as table.key
    experiment: Experiment
    ignored: Mapping[str, str] = field(default_factory=dict, compare=False)  # keys that do nothing here, and why

    @property
    def seed(self) -> int:
        """Which traffic, channels, data and first model it shares with others."""
        return self.experiment.run.seed

    @cached_property
    def digest(self) -> str:
        """Two points with the same are the same."""
        return config_digest(self.experiment)

    @property
    def title(self) -> str:
        """What makes it differ from the other points."""
        message = [] if self.label is None else [self.label]
        return ", ".join([*message, *(f"{key} = {value}" for key, value in self.values.items()), f"seed {self.seed}"])

    def run(self, out: Path) -> Run | None:
        """Its run, if there is one, however far it is."""
        return existing_run(self.experiment, out)


@dataclass(frozen=True)
class Sweep:
    """All points of a file, seed by seed, so that the first results are of all kinds."""

    name: str
    points: tuple[Point, ...]
    axes: tuple[Axis, ...] = ()
    figure: Mapping[str, Any] = field(default_factory=dict)  # how the file wants it drawn

    @property
    def labels(self) -> list[str]:
        """Of the variants, in the order of the file."""
        return list(dict.fromkeys(point.label for point in self.points if point.label is not None))

    @property
    def seeds(self) -> list[int]:
        """The repeats."""
        return list(dict.fromkeys(point.seed for point in self.points))


def load_sweep(path: str | Path, settings: Sequence[str] = (), seeds: Sequence[int] | None = None) -> Sweep:
    """Read a file with a [sweep], or with [[compare]], or both; every variant is swept.

    `settings` are `table.key=value` strings that override what all points share, also lists of [sweep] itself;
    `seeds` override those of the file.
    """
    settings = [settings] if isinstance(settings, str) else settings
    tables = read_experiment(Path(path))
    _require_some(path, tables)
    variants = taken_variants(tables, settings)
    override(tables, settings)
    swept, figure = _table(tables, "sweep"), _table(tables, "figure")
    chosen = _seeds(tables, swept, variants, seeds)
    if problems := [*rival_setting(settings, chosen)]:
        raise ExperimentError(problems)
    found = axes(swept)
    _require_free(found, variants, settings)
    steps = len(chosen or [1]) * max(1, len(variants)) * prod(len(axis.steps) for axis in found)
    if steps > _MOST:
        raise ExperimentError(f"{path}: that is {steps} points, and {_MOST} are the most: shorten a list.")
    points = tuple(_points(tables, found, variants, chosen))
    require_effect(points)
    return Sweep(_name(tables), points, tuple(found), figure)


def _require_some(path: str | Path, tables: Mapping[str, Any]) -> None:
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


def _seeds(
    tables: dict[str, Any], swept: dict[str, Any], variants: list[dict[str, Any]], given: Sequence[int] | None
) -> list[int] | None:
    """Those that are given, else those of [sweep], else those at the top of the file; they leave both tables."""
    top = tables.pop("seeds", None)
    written = swept.pop("seeds", None)
    if problems := [*misplaced_seeds(tables, variants)]:
        raise ExperimentError(problems)
    if top is not None and written is not None:
        raise ExperimentError("seeds and sweep.seeds both name the repeats: keep one of them.")
    chosen = check_seeds(top) if top is not None else None
    chosen = check_seeds(written, "sweep.seeds") if written is not None else chosen
    chosen = check_seeds(given) if given is not None else chosen
    rivals = [*rival_seeds(tables if given is None else {}, variants, "seeds")] if chosen else []
    if rivals:
        raise ExperimentError(rivals)
    return chosen


def _require_free(found: list[Axis], variants: list[dict[str, Any]], settings: Sequence[str]) -> None:
    """A key that is swept is said by nobody else."""
    swept = {key for axis in found for key in axis.keys}
    problems = [
        f"compare, {variant['label']!r}: {key} is swept, too: keep it in one of the two."
        for variant in variants
        for key in swept
        if key.partition(".")[2] in variant.get(key.partition(".")[0], {})
    ]
    for setting in settings:
        key = setting.partition("=")[0].strip()
        if key in swept:
            problems.append(f"--set {key} has no effect, because it is swept: set sweep.{key} to a list of one.")
    if problems:
        raise ExperimentError(problems)


def _points(
    tables: dict[str, Any], found: list[Axis], variants: list[dict[str, Any]], seeds: list[int] | None
) -> Iterator[Point]:
    repeats = [{}] if seeds is None else [{"run.seed": seed} for seed in seeds]
    for repeat, variant in product(repeats, variants or [{}]):
        for steps in product(*(axis.values() for axis in found)):
            values = {key: value for step in steps for key, value in step.items()}
            yield _point(_changed(tables, values | repeat), variant, values)


def _changed(tables: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    changed = {name: dict(table) if isinstance(table, dict) else table for name, table in tables.items()}
    for key, value in values.items():
        name, _, inner = key.partition(".")
        changed.setdefault(name, {})[inner] = value
    return changed


def _point(tables: dict[str, Any], variant: dict[str, Any], values: dict[str, Any]) -> Point:
    message = "".join(f"{key} = {value}, " for key, value in values.items())
    try:
        experiment, ignored = _settled(tables, variant)
    except ExperimentError as error:
        where = f"sweep, {message.rstrip(', ')}: " if message else ""
        raise ExperimentError([where + problem for problem in error.problems]) from None
    return Point(variant.get("label"), values, _named(experiment), ignored)


def _settled(tables: dict[str, Any], variant: dict[str, Any]) -> tuple[Experiment, Mapping[str, str]]:
    """The experiment of a point, in which ignored keys have their defaults, and those keys with the reasons."""
    if variant:
        found = variant_of(tables, variant)
        return found.experiment, found.ignored
    experiment = validated(tables)
    if problems := [*contradictions(experiment)]:
        raise ExperimentError(problems)
    return without_ignored(experiment), dict(ignored_keys(experiment))


def _named(experiment: Experiment) -> Experiment:
    """With a name that any sweep would give it."""
    words = f"{experiment.scheme.kind} {experiment.data.kind}".split()
    plain = [re.sub(r"[^a-z0-9]+", "-", word.rpartition(":")[2].lower()).strip("-") for word in words]
    name = "-".join([*filter(None, plain), f"s{experiment.run.seed}"])
    return experiment.model_copy(update={"run": experiment.run.model_copy(update={"name": name[:100]})})


def _name(tables: Mapping[str, Any]) -> str:
    run = tables.get("run")
    return str(run.get("name", "sweep")) if isinstance(run, dict) else "sweep"
