"""Several versions of one experiment, as a file with [[compare]] gives them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.rules import contradictions
from vefl_sim.experiment.toml import ALONE, HAS_SWEEP, override, read_experiment, validated
from vefl_sim.experiment.unused_keys import ignored_keys, without_ignored
from vefl_sim.sweep.seeds import check_seeds, misplaced_seeds, rival_seeds


@dataclass(frozen=True)
class Variant:
    """One of several versions of an experiment that are compared, with one seed."""

    comparison: str  # the name of the whole
    label: str
    experiment: Experiment
    ignored: Mapping[str, str] = field(default_factory=dict, compare=False)  # keys that do nothing here, and why

    @property
    def seed(self) -> int:
        """Which traffic, channels, data and first model it shares with the others."""
        return self.experiment.run.seed


def load_variants(path: str | Path, settings: Sequence[str] = (), seeds: Sequence[int] | None = None) -> list[Variant]:
    """The variants under [[compare]], each with a label and the tables in which it differs; none in most files.

    All of them once per seed if the file has `seeds` at its top, or `seeds` are given, which override it and run.seed.
    """
    settings = [settings] if isinstance(settings, str) else settings
    tables = read_experiment(Path(path))
    if "sweep" in tables:
        raise ExperimentError(HAS_SWEEP.format(path=path))
    tables.pop("figure", None)  # for another command
    given = taken_variants(tables, settings)
    chosen = _seeds(path, tables, given, seeds)
    override(tables, settings, *rival_setting(settings, chosen))
    variants = [variant_of(tables, variant) for variant in given]
    require_effect(variants)
    return [_seeded(variant, seed) for seed in chosen for variant in variants] if chosen else variants


def _seeds(
    path: str | Path, tables: dict[str, Any], given: Sequence[Mapping[str, Any]], seeds: Sequence[int] | None
) -> list[int] | None:
    """The seeds that were given, else those of the file, else none; they leave `tables`."""
    if seeds is not None and not given:
        raise ExperimentError(ALONE.format(what="--seeds", path=path, keep="use --set run.seed=…"))
    if "seeds" in tables and not given:
        raise ExperimentError(ALONE.format(what="seeds", path=path, keep="write run.seed"))
    written = check_seeds(tables.pop("seeds")) if "seeds" in tables else None
    problems = [*misplaced_seeds(tables, given)] if given else []
    if written is not None:
        problems += rival_seeds(tables, given, "seeds")
    elif seeds is not None:
        problems += rival_seeds({}, given, "--seeds")
    if problems:
        raise ExperimentError(problems)
    return written if seeds is None else check_seeds(seeds)


def _seeded(variant: Variant, seed: int) -> Variant:
    run = variant.experiment.run.model_copy(update={"seed": seed})
    return replace(variant, experiment=variant.experiment.model_copy(update={"run": run}))


def taken_variants(tables: dict[str, Any], settings: Sequence[str]) -> list[dict[str, Any]]:
    """What is under [[compare]], which leaves `tables`."""
    given = tables.pop("compare", [])
    _check_variants(given)
    _check_settings(given, settings)
    return list(given)


def rival_setting(settings: Sequence[str], seeds: Sequence[int] | None) -> Iterator[str]:
    """Both say which seed."""
    if seeds and any(setting.partition("=")[0].strip() == "run.seed" for setting in settings):
        yield "--set run.seed and seeds exclude each other: keep the seeds, and choose them with --seeds."


def _check_variants(given: Any) -> None:
    if not isinstance(given, list) or not all(isinstance(variant, dict) for variant in given):
        raise ExperimentError("compare must be written as tables: [[compare]], each with a label.")
    labels = [variant.get("label") for variant in given]
    if not all(isinstance(label, str) and label for label in labels):
        raise ExperimentError('Each [[compare]] needs a label, for example label = "PDPC".')
    for label in labels:
        if labels.count(label) > 1:
            raise ExperimentError(f"Two [[compare]] have the label {label!r}: each needs one of its own.")


def _check_settings(given: Sequence[Mapping[str, Any]], settings: Sequence[str]) -> None:
    """A --set that every variant overrides would do nothing."""
    for setting in settings:
        key = setting.partition("=")[0].strip()
        table, _, name = key.partition(".")
        if given and all(name in variant.get(table, {}) for variant in given):
            raise ExperimentError(f"--set {key} has no effect: every [[compare]] in the file says it itself.")


def variant_of(tables: Mapping[str, Any], given: Mapping[str, Any]) -> Variant:
    """The experiment of `tables`, in which the tables of one [[compare]] go first."""
    label, variant = given["label"], {name: table for name, table in given.items() if name != "label"}
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
    own = {f"{table}.{key}" for table, keys in variant.items() for key in keys}  # what all share may suit only some
    ignored = dict(ignored_keys(experiment))
    problems = [*contradictions(experiment), *(message for key, message in ignored.items() if key in own)]
    if problems:
        raise ExperimentError([f"compare, {label!r}: {problem}" for problem in problems])
    return Variant(name, label, without_ignored(experiment), ignored)


class WithIgnored(Protocol):
    """A variant, or a point of a sweep."""

    @property
    def ignored(self) -> Mapping[str, str]:
        """Keys that do nothing there, each with a sentence that says why."""
        ...


def require_effect(several: Sequence[WithIgnored]) -> None:
    """What all share may suit only some, but a key that does nothing in any of them is a mistake."""
    first = several[0].ignored if several else {}
    if problems := [message for key, message in first.items() if all(key in one.ignored for one in several)]:
        raise ExperimentError(problems)
