"""The variants of one experiment that a file lists under [[compare]], each with the tables in which it differs."""

from collections.abc import Mapping, Sequence
from typing import Any

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.rules import contradictions
from vefl_sim.experiment.toml import validated
from vefl_sim.experiment.unused_keys import unused_keys, without_unused_keys
from vefl_sim.sweep.axes import first_repeated

Variant = Mapping[str, Any]
"""An entry under [[compare]]: its label, and its tables."""
_MAX_VARIANTS = 1000  # more do not fit into a table or a figure


def pop_variants(tables: dict[str, Any], settings: Sequence[str]) -> list[Variant]:
    """Remove the entries under [[compare]] from `tables`, check and return them; [] if there is no [[compare]]."""
    if "compare" not in tables:
        return []
    variants = tables.pop("compare")
    _check_variants(variants)
    _check_settings(variants, settings)
    return list(variants)


def experiment_of(tables: Mapping[str, Any], variant: Variant) -> tuple[Experiment, Mapping[str, str]]:
    """The experiment of `tables` overridden by those of the variant, and its unused keys, each with the reason.

    In the experiment unused keys have their defaults: keys that all variants share may suit only some of them. An
    unused key of the variant itself is refused.
    """
    where = f"compare, {variant['label']!r}: " if variant else ""
    try:
        experiment = validated(_merged(tables, variant))
        unused = dict(unused_keys(experiment))
        own = {f"{name}.{key}" for name, table in variant.items() if name != "label" for key in table}
        if problems := [*contradictions(experiment), *(reason for key, reason in unused.items() if key in own)]:
            raise ExperimentError(problems)
    except ExperimentError as error:
        raise ExperimentError([where + problem for problem in error.problems]) from None
    return without_unused_keys(experiment), unused


def _merged(tables: Mapping[str, Any], variant: Variant) -> dict[str, Any]:
    """Tables in which keys of the variant replace those of `tables` one by one."""
    merged = {name: dict(table) if isinstance(table, dict) else table for name, table in tables.items()}
    for name, table in variant.items():
        if name == "label":
            continue
        base = merged.setdefault(name, {})
        if not isinstance(table, dict) or not isinstance(base, dict):
            raise ExperimentError(f"{name} must be a table, for example {name} = {{ … }}.")
        base.update(table)
    return merged


def _check_variants(variants: Any) -> None:
    if not isinstance(variants, list) or not variants or not all(isinstance(variant, dict) for variant in variants):
        raise ExperimentError("compare must be written as tables: [[compare]], each with a label.")
    labels = [variant.get("label") for variant in variants]
    if not all(isinstance(label, str) and label for label in labels):
        raise ExperimentError('Each [[compare]] needs a label, for example label = "PDPC".')
    if len(variants) > _MAX_VARIANTS:
        raise ExperimentError(
            f"{len(variants)} [[compare]] are more than the maximum of {_MAX_VARIANTS}: use a [sweep]."
        )
    for label in first_repeated(labels):
        raise ExperimentError(f"Two [[compare]] have the label {label!r}: give each a different one.")


def _check_settings(variants: Sequence[Variant], settings: Sequence[str]) -> None:
    """Refuse a --set that every variant overrides."""
    for setting in settings:
        key = setting.partition("=")[0].strip()
        table, _, name = key.partition(".")
        if all(name in variant.get(table, {}) for variant in variants):
            raise ExperimentError(f"--set {key} has no effect: every [[compare]] in the file sets it; change it there.")
