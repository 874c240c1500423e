"""The variants of one experiment that a file lists under [[compare]]."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.rules import contradictions
from vefl_sim.experiment.toml import ALONE, HAS_SWEEP, ExperimentFile, override, read_experiment, validated
from vefl_sim.experiment.unused_keys import unused_keys, without_unused_keys
from vefl_sim.sweep.seeds import check_seeds, conflicting_seeds, misplaced_seeds


@dataclass(frozen=True)
class Variant:
    """One variant of an experiment in a comparison, with one seed."""

    comparison: str  # name of the comparison
    label: str
    experiment: Experiment
    unused: Mapping[str, str] = field(default_factory=dict, compare=False)  # keys without effect here, with reasons

    @property
    def seed(self) -> int:
        """Seed of traffic, channels, data and initial model, which variants with the same seed share."""
        return self.experiment.run.seed


def load_variants(
    file: str | Path | ExperimentFile, settings: Sequence[str] = (), seeds: Sequence[int] | None = None
) -> list[Variant]:
    """The variants under [[compare]], each with a label and the tables in which it differs; [] without [[compare]].

    Each is returned once per seed if the file has `seeds` at its top, or if `seeds` are given, which override those of
    the file and run.seed.
    """
    settings = [settings] if isinstance(settings, str) else settings
    file = file if isinstance(file, ExperimentFile) else read_experiment(file)
    tables = file.copy_of_tables()
    if "sweep" in tables:
        raise ExperimentError(HAS_SWEEP.format(path=file.path))
    tables.pop("figure", None)  # for the command `figure`
    entries = pop_variants(tables, settings)
    chosen = _seeds(file.path, tables, entries, seeds)
    override(tables, settings, *conflicting_setting(settings, chosen))
    variants = [variant_of(tables, entry) for entry in entries]
    require_effect(variants)
    return [_seeded(variant, seed) for seed in chosen for variant in variants] if chosen else variants


def _seeds(
    path: str | Path, tables: dict[str, Any], entries: Sequence[Mapping[str, Any]], seeds: Sequence[int] | None
) -> list[int] | None:
    """The seeds that are given, else those of the file, else None; the key is removed from `tables`."""
    if seeds is not None and not entries:
        raise ExperimentError(ALONE.format(what="--seeds", path=path, keep="use --set run.seed=…"))
    if "seeds" in tables and not entries:
        raise ExperimentError(ALONE.format(what="seeds", path=path, keep="write run.seed"))
    written = check_seeds(tables.pop("seeds")) if "seeds" in tables else None
    problems = [*misplaced_seeds(tables, entries)] if entries else []
    if written is not None:
        problems += conflicting_seeds(tables, entries, "seeds")
    elif seeds is not None:
        problems += conflicting_seeds({}, entries, "--seeds")
    if problems:
        raise ExperimentError(problems)
    return written if seeds is None else check_seeds(seeds)


def _seeded(variant: Variant, seed: int) -> Variant:
    run = variant.experiment.run.model_copy(update={"seed": seed})
    return replace(variant, experiment=variant.experiment.model_copy(update={"run": run}))


def pop_variants(tables: dict[str, Any], settings: Sequence[str]) -> list[dict[str, Any]]:
    """Remove the entries under [[compare]] from `tables`, check and return them."""
    entries = tables.pop("compare", [])
    _check_variants(entries)
    _check_settings(entries, settings)
    return list(entries)


def conflicting_setting(settings: Sequence[str], seeds: Sequence[int] | None) -> Iterator[str]:
    """A problem if both a setting and the list of seeds choose the seed."""
    if seeds and any(setting.partition("=")[0].strip() == "run.seed" for setting in settings):
        yield "--set run.seed and seeds exclude each other: keep the seeds, and choose them with --seeds."


def _check_variants(entries: Any) -> None:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ExperimentError("compare must be written as tables: [[compare]], each with a label.")
    labels = [entry.get("label") for entry in entries]
    if not all(isinstance(label, str) and label for label in labels):
        raise ExperimentError('Each [[compare]] needs a label, for example label = "PDPC".')
    for label in labels:
        if labels.count(label) > 1:
            raise ExperimentError(f"Two [[compare]] have the label {label!r}: give each a different one.")


def _check_settings(entries: Sequence[Mapping[str, Any]], settings: Sequence[str]) -> None:
    """Refuse a --set that every variant overrides."""
    for setting in settings:
        key = setting.partition("=")[0].strip()
        table, _, name = key.partition(".")
        if entries and all(name in entry.get(table, {}) for entry in entries):
            raise ExperimentError(f"--set {key} has no effect: every [[compare]] in the file sets it; change it there.")


def variant_of(tables: Mapping[str, Any], entry: Mapping[str, Any]) -> Variant:
    """The experiment of `tables`, overridden by the tables of one entry under [[compare]]."""
    label, variant = entry["label"], {name: table for name, table in entry.items() if name != "label"}
    merged = {name: dict(table) if isinstance(table, dict) else table for name, table in tables.items()}
    for name, table in variant.items():
        base = merged.setdefault(name, {})
        if not isinstance(table, dict) or not isinstance(base, dict):
            raise ExperimentError(f"compare, {label!r}: {name} must be a table, for example {name} = {{ … }}.")
        base.update(table)
    run = merged.get("run")
    name = str(run.get("name", "")) if isinstance(run, dict) else ""
    if isinstance(run, dict) and name:
        run["name"] = f"{name}-{re.sub(r'[^a-z0-9]+', '-', label.lower()).strip('-')}"
    try:
        experiment = validated(merged)
    except ExperimentError as error:
        raise ExperimentError([f"compare, {label!r}: {problem}" for problem in error.problems]) from None
    own = {f"{table}.{key}" for table, keys in variant.items() for key in keys}  # shared keys may suit only some
    unused = dict(unused_keys(experiment))
    problems = [*contradictions(experiment), *(reason for key, reason in unused.items() if key in own)]
    if problems:
        raise ExperimentError([f"compare, {label!r}: {problem}" for problem in problems])
    return Variant(name, label, without_unused_keys(experiment), unused)


class WithIgnored(Protocol):
    """A variant of a comparison or a point of a sweep."""

    @property
    def unused(self) -> Mapping[str, str]:
        """Keys without effect there, each with a sentence that gives the reason."""
        ...


def require_effect(several: Sequence[WithIgnored]) -> None:
    """Refuse a key without effect in all variants or points; one that has an effect in some of them is accepted."""
    first = several[0].unused if several else {}
    if problems := [reason for key, reason in first.items() if all(key in one.unused for one in several)]:
        raise ExperimentError(problems)
