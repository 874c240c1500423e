"""Parts that a user brings: anything the TOML names as `module:name`."""

import hashlib
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from vefl_sim.errors import ExperimentError, VeflError
from vefl_sim.experiment import Experiment


def is_part(name: str) -> bool:
    """Whether a value of the TOML names a part of the user's, not one of ours."""
    return ":" in name


def load_part(key: str, name: str) -> Any:
    """The object behind `module:name`; `key` is the TOML key, for the error message."""
    module_name, attribute = name.split(":")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # an installed script does not look here by itself
    try:
        part = getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        raise ExperimentError(
            f'{key} = "{name}": there is no module {error.name!r}; is its folder on PYTHONPATH?'
        ) from None
    except AttributeError:
        raise ExperimentError(f'{key} = "{name}": module {module_name!r} has no {attribute!r}.') from None
    if not callable(part):
        raise ExperimentError(f'{key} = "{name}": {attribute!r} is not a class or a function.')
    return part


def make_part(key: str, name: str, *arguments: Any) -> Any:
    """Call the part with what its protocol says it gets."""
    part = load_part(key, name)
    try:
        return part(*arguments)
    except VeflError:
        raise
    except Exception as error:
        raise ExperimentError(f'{key} = "{name}" could not be made: {type(error).__name__}: {error}.') from error


def part_digests(experiment: Experiment) -> dict[str, str]:
    """A digest of the source of every part, so that an edited part makes another run."""
    return {name: _source_digest(load_part(key, name)) for key, name in part_names(experiment)}


def part_names(experiment: Experiment) -> list[tuple[str, str]]:
    """(TOML key, `module:name`) of all parts in use."""
    named = [
        ("mobility.kind", experiment.mobility.kind),
        ("mac.scheduler", experiment.mac.scheduler),
        ("rat.method", experiment.rat.method),
        ("scheme.kind", experiment.scheme.kind),
        ("data.kind", experiment.data.kind),
        ("model.factory", experiment.model.factory),
    ]
    return [(key, name) for key, name in named if is_part(name)]


def _source_digest(part: Any) -> str:
    try:
        module = inspect.getmodule(part)
        source = inspect.getsource(module if module is not None else part)
    except (OSError, TypeError):  # typed at a prompt, or compiled
        source = repr(part)
    return hashlib.sha256(source.encode()).hexdigest()[:16]
