"""Which experiments have the same results: their keys, without those that only concern presentation.

A stored result names the keys it was made with. It belongs to a point if these are equal, and if every key that the
program has gained since has its default in the point: whoever adds a key gives it the default that changes nothing.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import tomli_w

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.toml import to_toml

Keys = Mapping[str, Any]
"""Values by `table.key`."""

_PRESENTATION = ("run.name", "run.checkpoint_every", "learning.threads", "sumo.client", "trace.")
_LEARNT = "learning."
"""Keys of this table change what is learnt, and nothing of traffic, plans, channels and money."""
_UNUSED_BY = {
    "centralized": ("data.dirichlet_alpha", "data.partition", "data.shards_per_cv", "scheme.selected", "vefl.budget"),
}
"""Keys that cannot change the results of a scheme, beyond those that a sweep sets to their defaults."""


def keys_of(experiment: Experiment) -> dict[str, Any]:
    """Every key that can change results, with its value."""
    return relevant(flat(tomllib.loads(to_toml(experiment))))


def flat(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of nested tables."""
    return {
        f"{table}.{key}": value
        for table, keys in tables.items()
        if isinstance(keys, dict)
        for key, value in keys.items()
    }


def toml_of(keys: Keys) -> str:
    """The same keys as TOML."""
    tables: dict[str, dict[str, Any]] = {}
    for name, value in keys.items():
        table, _, key = name.partition(".")
        tables.setdefault(table, {})[key] = value
    return tomli_w.dumps(tables)


def relevant(keys: Keys) -> dict[str, Any]:
    """Without the keys that change no result; files are named without their folders, which differ between machines."""
    found = {key: value for key, value in keys.items() if not key.startswith(_PRESENTATION)}
    if found.get("data.kind") != "folder":
        found.pop("data.dir", None)  # the public data sets are the same wherever they are
    if isinstance(file := found.get("mobility.file"), str):
        found["mobility.file"] = PurePath(file).name
    return {key: value for key, value in found.items() if key not in _unused(found)}


def matches(stored: Keys, wanted: Keys) -> bool:
    """Whether results of an experiment with the `stored` keys are those of one with the `wanted` keys."""
    return _equal(stored, wanted, _unused(wanted))


def matches_network(stored: Keys, wanted: Keys) -> bool:
    """The same for an experiment that learns nothing: any learning on the same network side serves it."""
    return wanted.get("learning.kind") == "none" and _equal(_network(stored), _network(wanted), _unused(wanted))


def key_digest(keys: Keys) -> str:
    """Names a result file; it does not change with our sources."""
    return hashlib.sha256(json.dumps(dict(keys), sort_keys=True).encode()).hexdigest()[:10]


def _network(keys: Keys) -> dict[str, Any]:
    """Without the keys of learning."""
    return {key: value for key, value in keys.items() if not key.startswith(_LEARNT)}


def _unused(keys: Keys) -> frozenset[str]:
    return frozenset(_UNUSED_BY.get(str(keys.get("scheme.kind")), ()))


def _equal(first: Keys, second: Keys, unused: Iterable[str]) -> bool:
    """Whether all keys are equal; one that is absent has its default."""
    return all(
        first.get(key, _DEFAULTS.get(key)) == second.get(key, _DEFAULTS.get(key))
        for key in {*first, *second}.difference(unused)
    )


def _defaults() -> dict[str, Any]:
    """Of the keys of all tables, as TOML would have them."""
    found: dict[str, Any] = {}
    for name, table in Experiment.model_fields.items():
        for key, field in getattr(table.annotation, "model_fields", {}).items():
            default = None if field.is_required() else field.get_default(call_default_factory=True)
            found[f"{name}.{key}"] = list(default) if isinstance(default, tuple) else default
    return found


_DEFAULTS = _defaults()
