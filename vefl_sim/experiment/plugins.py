"""Parts that a user brings: anything the TOML names as `module:name`."""

import hashlib
import importlib
import inspect
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

from vefl_sim.core.errors import ExperimentError, VeflError
from vefl_sim.experiment.experiment import Experiment


def is_part(name: str) -> bool:
    """Whether a value of the TOML names a part of the user's, not one of ours."""
    return ":" in name


def load_part(key: str, name: str) -> Any:
    """The object behind `module:name`; `key` is the TOML key, for the error message."""
    module_name, attribute = name.split(":")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # an installed script does not look here by itself
    module = _import(key, name, module_name)
    if not hasattr(module, attribute):
        raise ExperimentError(f'{key} = "{name}": module {module_name!r} has no {attribute!r}.')
    part = getattr(module, attribute)
    if not callable(part):
        raise ExperimentError(f'{key} = "{name}": {attribute!r} is not a class or a function.')
    return part


def _import(key: str, name: str, module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and module_name.split(".")[0] == (error.name or "").split(".")[0]:
            hint = f"there is no module {error.name!r}; is its folder on PYTHONPATH?"
        else:
            hint = f"importing {module_name!r} fails: {type(error).__name__}: {error}"
        raise ExperimentError(f'{key} = "{name}": {hint}') from error


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
    return {name: _source_digest(load_part(key, name), name) for key, name in part_names(experiment)}


def part_names(experiment: Experiment) -> list[tuple[str, str]]:
    """(TOML key, `module:name`) of all parts in use."""
    named = [
        ("mobility.kind", experiment.mobility.kind),
        ("radio.channel", experiment.radio.channel),
        ("mac.scheduler", experiment.mac.scheduler),
        ("rat.method", experiment.rat.method),
        ("scheme.kind", experiment.scheme.kind),
        ("data.kind", experiment.data.kind),
        ("model.factory", experiment.model.factory),
    ]
    return [(key, name) for key, name in named if is_part(name)]


def _source_digest(part: Any, name: str) -> str:
    """Of the module that the TOML names and of the user's modules that it uses, directly or not."""
    sources: dict[str, bytes] = {}
    _collect(sys.modules[name.split(":")[0]], sources)
    if not sources:  # typed at a prompt, or compiled
        sources[name] = repr(part).encode()
    return hashlib.sha256(b"\0".join(sources[file] for file in sorted(sources))).hexdigest()[:16]


def _collect(module: ModuleType | None, sources: dict[str, bytes]) -> None:
    """Sources of a module and of what it imports, but for installed packages and vefl_sim itself."""
    file = getattr(module, "__file__", None)
    if module is None or file is None or file in sources or not file.endswith(".py") or _installed(file):
        return
    sources[file] = Path(file).read_bytes()
    for value in vars(module).values():
        _collect(value if isinstance(value, ModuleType) else inspect.getmodule(value), sources)


def _installed(file: str) -> bool:
    homes = (*sysconfig.get_paths().values(), str(Path(__file__).parents[1]))
    return any(Path(file).is_relative_to(home) for home in homes)
