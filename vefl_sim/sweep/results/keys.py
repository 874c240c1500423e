"""Which experiments have the same results: those with the same keys, apart from keys that only concern presentation.

A stored result contains the keys it was made with. It belongs to a point if these are equal, and if every key that was
added to the program since then has its default in the point: a new key must have a default that changes nothing.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import tomli_w

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import declaration
from vefl_sim.experiment.toml import to_toml, validated
from vefl_sim.experiment.unused_keys import unused_environment
from vefl_sim.sweep.points import flat, nested

Keys = Mapping[str, Any]
"""Values by `table.key`."""

_PRESENTATION = (
    *("run.name", "run.checkpoint_every", "run.keep_checkpoints", "run.watch"),
    *("learning.keep_models", "learning.threads", "sumo.client"),
    "trace.",
)
_LEARNING = "learning."
"""Keys of this table change accuracy and loss, but not traffic, plans, channels or money."""
_DEFAULTS: Keys = flat(validated({"run": {"name": "default"}}).model_dump(mode="json"))
"""The defaults of all keys, with the types that TOML has."""


def keys_of(experiment: Experiment) -> dict[str, Any]:
    """Every key that can change results; files have no folders, because these differ between machines."""
    keys = flat(tomllib.loads(to_toml(experiment)))
    kept = {key: value for key, value in keys.items() if not key.startswith(_PRESENTATION)}
    if not declaration("data.kind", str(kept.get("data.kind")), "own_files", False):
        kept.pop("data.dir", None)  # the public data sets are the same in every folder
    for key in ("mobility.file", "model.start"):
        if isinstance(file := kept.get(key), str):
            kept[key] = PurePath(file).name
    unused = unused_environment(str(kept.get("scheme.kind")))
    return {key: value for key, value in kept.items() if key not in unused}


def toml_of(keys: Keys) -> str:
    """The TOML text with these keys."""
    tables: dict[str, Any] = nested(keys)
    if changes := tables.pop("change", None):
        tables["change"] = [changes[number] for number in sorted(changes, key=int)]
    return tomli_w.dumps(tables)


def matches(stored: Keys, wanted: Keys) -> bool:
    """Whether an experiment with the `stored` keys has the same results as one with the `wanted` keys."""
    unused = unused_environment(str(wanted.get("scheme.kind")))
    keys = {*stored, *wanted}.difference(unused)
    return all(stored.get(key, _DEFAULTS.get(key)) == wanted.get(key, _DEFAULTS.get(key)) for key in keys)


def matches_network(stored: Keys, wanted: Keys) -> bool:
    """Whether `wanted` learns nothing, and the network results of `stored` are the same, whatever it learns."""
    first, second = ({key: own[key] for key in own if not key.startswith(_LEARNING)} for own in (stored, wanted))
    return wanted.get("learning.kind") == "none" and matches(first, second)


def key_digest(keys: Keys) -> str:
    """A short digest of the keys for file names; it does not depend on our sources."""
    return hashlib.sha256(json.dumps(dict(keys), sort_keys=True).encode()).hexdigest()[:10]
