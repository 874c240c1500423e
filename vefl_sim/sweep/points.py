"""The points of a sweep: one experiment for each combination of variant, values and seed.

A point is named by its configuration, not by its sweep, so sweeps with a point in common share its run. Each mistake in
[sweep], [[compare]] or the seeds is reported in one sentence.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice, product
from math import prod
from pathlib import Path
from typing import Any

from vefl_sim.core.errors import MAX_PROBLEMS, ExperimentError
from vefl_sim.core.progress import counted
from vefl_sim.experiment.changes import BETWEEN_ROUNDS
from vefl_sim.experiment.complaints import is_key, shortened, shown, unknown
from vefl_sim.experiment.experiment import TABLES, Experiment
from vefl_sim.experiment.fields import Settings, setting_texts
from vefl_sim.experiment.rules import contradictions
from vefl_sim.experiment.toml import ExperimentFile, override, read_experiment, validated
from vefl_sim.experiment.unused_keys import unused_keys, without_unused_environment, without_unused_keys
from vefl_sim.records.identity import Identity
from vefl_sim.records.run_directory import Run, existing_run

Variant = Mapping[str, Any]
"""An entry under [[compare]]: its label, and its tables."""
_MAX_POINTS, _MAX_VARIANTS, _MAX_SEEDS = 100_000, 1000, 1000  # more are probably a mistyped list or range
_RANGE = re.compile(r"\s*(\d{1,19})\s*(?:-\s*(\d{1,19})\s*)?", re.ASCII)
_NOT_SWEPT = {
    "run.seed": "write the repeats as sweep.seeds = [1, 2, 3]",
    "run.name": "points are named by their configuration",
    "learning.threads": "each point runs on one thread",
} | dict.fromkeys(
    ("run.checkpoint_every", "run.keep_checkpoints", "run.watch", "learning.keep_models"), "it changes no result"
)


@dataclass(frozen=True)
class Axis:
    """One key of its own, or the keys of one [[sweep.zip]], whose values change together."""

    keys: tuple[str, ...]
    steps: tuple[tuple[Any, ...], ...]  # each step has one value per key


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
    tables = (file if seeds is None else compared_with_itself(file)).copy_of_tables()
    if not {"compare", "sweep"} & {*tables}:
        raise ExperimentError(
            f"{file.path} has no [sweep]: add one, for example sweep.seeds = [1, 2, 3], or run it by itself with: "
            f"python -m vefl_sim {file.path}"
        )
    variants = _variants(tables.pop("compare")) if "compare" in tables else []
    override(tables, settings)
    swept, figure = _table(tables, "sweep"), _table(tables, "figure")
    chosen = _chosen_seeds(tables, swept, variants, settings, seeds)
    axes = _axes(swept)
    _require_set_once(axes, variants, settings)
    count = len(chosen or [1]) * max(1, len(variants)) * prod(len(axis.steps) for axis in axes)
    if count > _MAX_POINTS:
        raise ExperimentError(
            f"{file.path}: {count} points are more than the maximum of {_MAX_POINTS}: shorten a list."
        )
    points = tuple(counted(_points(tables, axes, variants, chosen), "checking the points", count))
    if ineffective := [why for key, why in points[0].unused.items() if all(key in point.unused for point in points)]:
        raise ExperimentError(ineffective)  # a key that has an effect in some points is accepted
    return Sweep(str(tables.get("run", {}).get("name", "sweep")), points, tuple(axes), figure)


def compared_with_itself(file: ExperimentFile) -> ExperimentFile:
    """The file of one experiment as a comparison with one entry, whose runs differ in their seeds; others unchanged."""
    if {"compare", "sweep"} & set(file.tables):
        return file
    return replace(file, tables={**file.tables, "compare": [{"label": file.path.stem}]})


def _table(tables: dict[str, Any], name: str) -> dict[str, Any]:
    table = tables.pop(name, {})
    if not isinstance(table, dict):
        raise ExperimentError(f"[{name}] must be a table.")
    return dict(table)


def _require_unique(values: Iterable[Any], where: str, text: Callable[[Any], str] = str) -> None:
    """Refuse a value that is in a list twice; `text` is how it is written in the error."""
    seen = set()
    for value in values:
        if repr(value) in seen:
            raise ExperimentError(f"{where}: {text(value)} appears twice: remove one of them.")
        seen.add(repr(value))


def _axes(sweep: Mapping[str, Any]) -> list[Axis]:
    """The axes of a [sweep]: one for each key, and one for each [[sweep.zip]] with all its keys."""
    zipped = sweep.get("zip", [])
    if not isinstance(zipped, list) or not all(isinstance(table, dict) for table in zipped):
        raise ExperimentError("sweep.zip must be written as tables: [[sweep.zip]], each with keys that change in step.")
    single = _lists({name: table for name, table in sweep.items() if name != "zip"})
    tables = [*({key: values} for key, values in single.items()), *map(_lists, zipped)]
    _require_unique((key for table in tables for key in table), "sweep")
    return [*map(_axis, tables)]


def _lists(tables: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The lists of values by `table.key`."""
    if wrong := [name for name, table in tables.items() if not isinstance(table, dict)]:
        raise ExperimentError(
            f"sweep.{wrong[0]} is neither seeds nor zip: a key needs its table, for example sweep.radio.prbs = [6, 12]."
        )
    lists = flat(tables)
    wrong_keys = (f"sweep.{key}: {problem}" for key, values in lists.items() if (problem := _problem(key, values)))
    if problems := [*islice(wrong_keys, MAX_PROBLEMS)]:  # nobody reads more, and searching for the nearest name is slow
        raise ExperimentError(problems)
    return lists


def _problem(name: str, values: Any) -> str | None:
    table, _, key = name.partition(".")
    if table == "change":
        number, _, key = key.partition(".")
        if not number.isdecimal() or key not in (*BETWEEN_ROUNDS, "from_round", "at_s"):
            return "write it as change.1.vefl.budget, with the number of the [[change]] and a key that can change."
    elif table not in TABLES:
        return unknown((table,))
    elif not is_key(table, key):
        return unknown((table, key))
    if reason := _NOT_SWEPT.get(name):
        return f"it cannot be swept: {reason}."
    if not isinstance(values, list):
        return f"it must be a list of values, for example [{shown(values)}]."
    return None if values else "the list is empty; name at least one value, or remove the key."


def _axis(lists: dict[str, list[Any]]) -> Axis:
    if len({len(values) for values in lists.values()}) != 1:
        listed = (
            ", ".join(f"{key} has {len(values)}" for key, values in lists.items()) or "a table is empty: there are no"
        )
        raise ExperimentError(f"sweep.zip: the lists must have the same length, but {listed} values.")
    steps = tuple(zip(*lists.values(), strict=True))
    _require_unique(
        steps, "sweep", lambda step: ", ".join(f"{key} = {shown(v)}" for key, v in zip(lists, step, strict=True))
    )
    return Axis(tuple(lists), steps)


def _variants(variants: Any) -> list[Variant]:
    """The entries under [[compare]], each with a label."""
    if not isinstance(variants, list) or not variants or not all(isinstance(variant, dict) for variant in variants):
        raise ExperimentError("compare must be written as tables: [[compare]], each with a label.")
    labels = [variant.get("label") for variant in variants]
    if not all(isinstance(label, str) and label for label in labels):
        raise ExperimentError('Each [[compare]] needs a label, for example label = "PDPC".')
    if len(variants) > _MAX_VARIANTS:
        raise ExperimentError(
            f"{len(variants)} [[compare]] are more than the maximum of {_MAX_VARIANTS}: use a [sweep]."
        )
    _require_unique(labels, "compare", repr)
    return variants


def _require_set_once(axes: Sequence[Axis], variants: Sequence[Variant], settings: Sequence[str]) -> None:
    """Refuse a swept key that a variant or a setting sets, too, and a setting that every variant overrides."""
    swept = {key for axis in axes for key in axis.keys}
    by_label = {variant["label"]: {*flat(variant)} for variant in variants}
    problems = [
        f"compare, {label!r}: {key} is also swept: keep it in one of the two places."
        for label, keys in by_label.items()
        for key in keys & swept
    ]
    for key in (setting.partition("=")[0].strip() for setting in settings):
        if key in swept:
            problems.append(f"--set {key} has no effect, because it is swept: set sweep.{key} to a list of one value.")
        elif by_label and all(key in keys for keys in by_label.values()):
            problems.append(f"--set {key} has no effect: every [[compare]] in the file sets it; change it there.")
    if problems:
        raise ExperimentError(problems)


def parse_seeds(text: str) -> list[int]:
    """The seeds in the text of --seeds: numbers and ranges separated by commas, for example 1,2,3 or 1-5."""
    where, seeds = f"--seeds {shortened(text)}", list[int]()
    for match in map(_RANGE.fullmatch, text.split(",")):
        if not match:
            raise ExperimentError(f"{where}: write numbers or a range, for example --seeds 1,2,3 or --seeds 1-5.")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ExperimentError(f"{where}: the range {first}-{last} is empty, write it as {last}-{first}.")
        seeds += range(first, min(last, first + _MAX_SEEDS) + 1)  # one seed too many is refused below
    return _check_seeds(seeds, where)


def _check_seeds(seeds: Any, where: str) -> list[int]:
    """Return seeds that are whole numbers, each once and at least one; `where` names them in errors."""
    if not isinstance(seeds, Sequence) or isinstance(seeds, str) or not all(type(seed) is int for seed in seeds):
        raise ExperimentError(f"{where}: it must be a list of whole numbers, for example seeds = [1, 2, 3].")
    if not 1 <= len(seeds) <= _MAX_SEEDS:
        how_many = "these are more than" if seeds else "the list is empty: give 1 to"
        raise ExperimentError(f"{where}: {how_many} {_MAX_SEEDS} seeds.")
    if wrong := [seed for seed in seeds if not 0 <= seed < 2**63]:
        raise ExperimentError(f"{where}: a seed must be at least 0 and less than 2^63, and {shown(wrong[0])} is not.")
    _require_unique(seeds, where)
    return list(seeds)


def _chosen_seeds(
    tables: dict[str, Any],
    swept: dict[str, Any],
    variants: Sequence[Variant],
    settings: Sequence[str],
    given: Sequence[int] | None,
) -> list[int] | None:
    """The seeds that are given, else those of [sweep], else those at the top of the file, else None.

    Both keys are removed from the tables of the file, to which the settings were applied.
    """
    listed = {name: own.pop("seeds") for name, own in (("seeds", tables), ("sweep.seeds", swept)) if "seeds" in own}
    if len(listed) > 1:
        raise ExperimentError("seeds and sweep.seeds both list the seeds: keep one of them.")
    of_variants = {f"the [[compare]] of {variant['label']!r}": variant for variant in variants}
    for name, table in ({f"[{name}]": table for name, table in tables.items()} | of_variants).items():
        if _has(table, "seeds"):  # in TOML, a key belongs to the table above it
            raise ExperimentError(f"seeds is in {name}: move it to the top of the file, above the first table.")
    seeds = {"seeds": given} if given is not None else listed
    if not seeds:
        return None
    places = [f"compare, {variant['label']!r}: " for variant in variants if _has(variant.get("run"), "seed")]
    is_set = any(re.match(r"\s*run\.seed\s*=\s*\S", setting) for setting in settings)
    if is_set or (given is None and _has(tables.get("run"), "seed")):
        places.append("--set " if is_set else "")
    if places:
        problem = "run.seed and a list of seeds exclude each other: keep one of them."
        raise ExperimentError([place + problem for place in places])
    return next(_check_seeds(own, name) for name, own in seeds.items())


def _has(table: Any, key: str) -> bool:
    return isinstance(table, dict) and key in table


def _points(
    tables: dict[str, Any], axes: Sequence[Axis], variants: Sequence[Variant], seeds: list[int] | None
) -> Iterator[Point]:
    repeats = [{}] if seeds is None else [{"run.seed": seed} for seed in seeds]
    for repeat, variant, *steps in product(repeats, variants or [{}], *(axis.steps for axis in axes)):
        pairs = (zip(axis.keys, step, strict=True) for axis, step in zip(axes, steps, strict=True))
        values = dict(chain.from_iterable(pairs))
        try:
            experiment, unused = experiment_of(_merged(tables, nested(values | repeat)), variant)
        except ExperimentError as error:
            listed = ", ".join(f"{key} = {value}" for key, value in values.items())
            where = f"sweep, {listed}: " if listed else ""
            raise ExperimentError([where + problem for problem in error.problems]) from None
        yield Point(variant.get("label"), values, _named(without_unused_environment(experiment)), unused)


def experiment_of(tables: Mapping[str, Any], variant: Variant) -> tuple[Experiment, Mapping[str, str]]:
    """The experiment of `tables` overridden by those of the variant, and its unused keys, each with the reason.

    In the experiment unused keys have their defaults: keys that all variants share may suit only some of them. An
    unused key of the variant itself is refused.
    """
    changed = {name: table for name, table in variant.items() if name != "label"}
    try:
        experiment = validated(_merged(tables, changed))
        unused = dict(unused_keys(experiment))
        own = {f"{name}.{key}" for name, table in changed.items() for key in table}
        if problems := [*contradictions(experiment), *(reason for key, reason in unused.items() if key in own)]:
            raise ExperimentError(problems)
    except ExperimentError as error:
        where = f"compare, {variant['label']!r}: " if variant else ""
        raise ExperimentError([where + problem for problem in error.problems]) from None
    return without_unused_keys(experiment), unused


def flat(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The values of nested tables by `table.key`; those of the first [[change]] by `change.1.table.key`."""
    keys = {
        f"{name}.{key}": value
        for name, table in tables.items()
        if isinstance(table, dict) and name != "change"
        for key, value in table.items()
    }
    changes = tables.get("change", {})
    numbered = changes.items() if isinstance(changes, dict) else enumerate(changes, start=1)
    for number, change in numbered:
        times = {key: value for key, value in change.items() if not isinstance(value, dict)}
        keys |= {f"change.{number}.{key}": value for key, value in (times | flat(change)).items()}
    return keys


def nested(keys: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The tables with these values, which are given by `table.key`; those of each [[change]] by its number."""
    tables: dict[str, dict[str, Any]] = {}
    for name, value in keys.items():
        *path, key = name.split(".")
        table = tables
        for part in path:
            table = table.setdefault(part, {})
        table[key] = value
    return tables


def _merged(tables: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Tables in which the changed keys replace those of `tables` one by one."""
    merged = dict(tables)
    for name, table in changed.items():
        base = tables.get(name)
        if name == "change" and isinstance(base, list) and isinstance(table, dict):
            if missing := [number for number in table if int(number) > len(base)]:
                raise ExperimentError(f"sweep.change.{missing[0]}: the file has no such [[change]].")
            merged[name] = [_merged(change, table.get(str(number), {})) for number, change in enumerate(base, start=1)]
        else:
            merged[name] = base | table if isinstance(base, dict) and isinstance(table, dict) else table
    return merged


def _named(experiment: Experiment) -> Experiment:
    """The experiment named by scheme, data set and seed, so that every sweep gives the same point the same name."""
    words = f"{experiment.scheme.kind} {experiment.data.kind}".split()
    plain = [re.sub(r"[^a-z0-9]+", "-", word.rpartition(":")[2].lower()).strip("-") for word in words]
    name = "-".join([*filter(None, plain), f"s{experiment.run.seed}"])
    return experiment.model_copy(update={"run": experiment.run.model_copy(update={"name": name[:100]})})
