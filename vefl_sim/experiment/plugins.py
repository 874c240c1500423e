"""Parts: classes and functions that the TOML names, built-in kinds by a short name, user-defined ones by `module:name`.

A part may declare what the rest of the program has to know about it, for example `unused_keys` (docs/parts.md).
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from vefl_sim.core.errors import ExperimentError, VeflError
from vefl_sim.core.state import Stateful
from vefl_sim.experiment.complaints import is_key
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.kinds import FAMILIES
from vefl_sim.experiment.part_files import load_module, part_digest

Unused = tuple[str, Sequence[str]]
"""A cause, for example a setting, and the keys (`table.key`) that have no effect because of it."""


def nothing(experiment: Experiment) -> Iterator[Any]:
    """Yield nothing: the declaration of a part without rules."""
    yield from ()


@dataclass(frozen=True)
class Kind:
    """A built-in part with its declarations, for parts that are functions or whose code is slow to import."""

    make: Callable[..., Any]  # creates the part; imports what is slow to import
    unused_keys: Sequence[str] = ()
    unused_when: Callable[[Experiment], Iterator[Unused]] = nothing
    contradictions: Callable[[Experiment], Iterator[str]] = nothing

    def __call__(self, *arguments: Any) -> Any:
        """Create the part."""
        return self.make(*arguments)


def is_part(name: str) -> bool:
    """Whether a TOML value names a user-defined part (`module:name`) and not a built-in method."""
    return ":" in name


def load_part(key: str, name: str) -> Any:
    """Import a part that the TOML `key` names; every part is loaded here, built-in or user-defined."""
    module_name, attribute = FAMILIES.get(key, {}).get(name, name).split(":")
    module = load_module(key, name) if is_part(name) else import_module(module_name)
    if not hasattr(module, attribute):
        raise ExperimentError(f'{key} = "{name}": module {module_name!r} has no {attribute!r}.')
    part = getattr(module, attribute)
    if not callable(part):
        raise ExperimentError(f'{key} = "{name}": {attribute!r} is not a class or a function.')
    return part


def make_part(key: str, name: str, *arguments: Any) -> Any:
    """Create a part by calling it with the arguments that its protocol defines."""
    part = load_part(key, name)
    try:
        return part(*arguments)
    except VeflError:
        raise
    except (Exception, SystemExit) as error:
        if not is_part(name):
            raise
        raise ExperimentError(f'{key} = "{name}" could not be created: {type(error).__name__}: {error}.') from error


def require_protocol(key: str, part: Any, protocol: type, *, partly: bool = False) -> None:
    """Refuse a part that lacks a method of a public protocol, or whose method takes other arguments.

    `partly`: a part may leave out methods, but not all of them.
    """
    methods = {name: m for name, m in vars(protocol).items() if not name.startswith("_") and inspect.isfunction(m)}
    if partly:
        present = {name: definition for name, definition in methods.items() if hasattr(part, name)}
        if not present:
            some = f"has none of the methods of vefl_sim.{protocol.__name__} ({', '.join(methods)}): add one"
            raise ExperimentError(f"{key}: {type(part).__name__} {some}.")
        methods = present
    for method, definition in methods.items():
        call = f"{method}({', '.join(_arguments(definition))}) of vefl_sim.{protocol.__name__}"
        own = getattr(part, method, None)
        if not callable(own) or getattr(own, "__isabstractmethod__", False):
            raise ExperimentError(f"{key}: {type(part).__name__} has no method {call}: add it.")
        if (taken := _other_arguments(own, definition)) is not None:
            raise ExperimentError(f"{key}: {type(part).__name__}.{method}({taken}) must be {call}.")


def with_defaults(part: Any, base: type) -> Any:
    """A part with the defaults that `base` has for optional members; a part that inherits from it has them already."""
    if isinstance(part, base):
        return part
    completed = type(type(part).__name__, (_Completed,), {"_base": base})  # error messages have the name of the part
    return completed(part)


class _Completed:
    """Reads and writes the members of a part that does not inherit from the base class of its kind."""

    _base: type

    def __init__(self, part: Any) -> None:
        vars(self)["_part"] = part
        if isinstance(part, Stateful):
            vars(self).update(state=part.state, restore=part.restore)

    def __getattr__(self, name: str) -> Any:
        part, defaults = vars(self)["_part"], vars(self._base)
        return getattr(part, name, defaults[name]) if name in defaults else getattr(part, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["_part"], name, value)


def load_function(key: str, name: str, protocol: Any) -> Any:
    """Import the function that the TOML `key` names; `protocol`, with one method, __call__, defines its arguments."""
    function = load_part(key, name)
    if is_part(name) and (taken := _other_arguments(function, protocol.__call__)) is not None:
        wanted = ", ".join(_arguments(protocol.__call__))
        raise ExperimentError(f'{key} = "{name}" takes the arguments ({taken}): it must take ({wanted}).')
    return function


def _arguments(definition: Callable[..., Any]) -> list[str]:
    """The arguments of a method of a protocol, without self."""
    return [*inspect.signature(definition).parameters][1:]


def _other_arguments(own: Callable[..., Any], definition: Callable[..., Any]) -> str | None:
    """The arguments that a function takes if it cannot be called like `definition`, else None."""
    try:
        signature = inspect.signature(own)
    except ValueError:
        return None  # a compiled function need not have one
    try:
        signature.bind(*_arguments(definition))
    except TypeError:
        return ", ".join(signature.parameters)
    return None


def _is_key_list(value: Any) -> bool:
    return not isinstance(value, str) and all(is_key(*one.partition(".")[::2]) for one in value)


_DECLARATIONS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("unused_keys", "unused_environment"), ("a list of keys", _is_key_list)),
    **dict.fromkeys(("unused_when", "contradictions", "no_cv_message"), ("a function or a staticmethod", callable)),
    **dict.fromkeys(("selects", "trains_centrally"), ("True or False", lambda value: isinstance(value, bool))),
    **dict.fromkeys(
        ("train_samples", "test_samples", "side_px", "channels"), ("a whole number from 1 on", lambda value: value >= 1)
    ),
    "wall_s_per_s": ("a number from 0 on", lambda value: 0 <= value < float("inf")),
    "label": ("text", lambda value: isinstance(value, str)),
}
"""What a user-defined part can declare (docs/parts.md); other attributes of it mean nothing to the program."""


def declaration(key: str, name: str, attribute: str, default: Any) -> Any:
    """What the part that the TOML `key` names declares as `attribute`; `default` if it declares nothing.

    A user-defined class inherits no declaration: it may well use a key that its base class does not use.
    """
    if not is_part(name):
        return getattr(load_part(key, name), attribute, default)
    if attribute not in _DECLARATIONS:
        return default  # without importing the part, which may be that of a stranger's run
    part, (wanted, is_right) = load_part(key, name), _DECLARATIONS[attribute]
    inherited = isinstance(part, type) and attribute not in vars(part)
    declared = default if inherited else getattr(part, attribute, default)
    with suppress(Exception):
        if declared is default or is_right(declared):
            return declared
    raise ExperimentError(f'{key} = "{name}" declares {attribute} = {declared!r}: it must be {wanted}.')


def require_declarations(key: str, name: str) -> None:
    """Raise an ExperimentError if a user-defined part declares something of a wrong type."""
    for attribute in _DECLARATIONS if is_part(name) else ():
        declaration(key, name, attribute, None)


def declared_results(key: str, name: str, attribute: str, experiment: Experiment) -> list[Any]:
    """What the function yields that a part declares as `attribute`; an error in that of a user is one sentence."""
    try:
        results = declaration(key, name, attribute, nothing)(experiment)
        results = [results] if isinstance(results, str) else [*results]
        for _, keys in results if attribute == "unused_when" else ():
            if not _is_key_list(keys):
                raise ValueError(f"{keys!r} is not a list of keys")
        return results
    except Exception as error:
        if isinstance(error, VeflError) or not is_part(name):
            raise
        raise ExperimentError(f'{key} = "{name}" declares something wrong: {type(error).__name__}: {error}.') from error


def part_digests(experiment: Experiment) -> dict[str, str]:
    """A digest of the source of every part in use, so that an edited part leads to a new run; none is imported."""
    return {name: part_digest(key, name) for key, name in part_names(experiment)}


def part_names(experiment: Experiment) -> list[tuple[str, str]]:
    """The (TOML key, `module:name`) of every user-defined part in use."""
    others = {
        "model.factory": experiment.model.factory,
        "agent.policy": experiment.agent.policy,
        "flower.strategy": experiment.flower.strategy,
    }
    named = (*kinds_of(experiment), *((key, name) for key, name in others.items() if name))
    return [(key, name) for key, name in named if is_part(name)]


def kinds_of(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Yield the (TOML key, name) of the chosen kind of each family, built-in or user-defined."""
    for key in FAMILIES:
        table, _, name = key.partition(".")
        yield key, getattr(getattr(experiment, table), name)
