"""Checkpoint state: plain values and arrays in nested dicts, lists and tuples, and how it is stored as JSON."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import MappingProxyType, UnionType
from typing import (
    Any,
    ClassVar,
    Final,
    Protocol,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

import numpy as np

from vefl_sim.core.errors import RunFailed

State = dict[str, Any]
Arrays = dict[str, np.ndarray]
_ARRAY, _PAIRS, _TUPLE = "array", "pairs", "tuple"  # a type that JSON lacks is stored as a dict with this key
T = TypeVar("T")
NOT_SAVED: Final[Mapping[str, Any]] = MappingProxyType({"saved": False})
"""Metadata of a dataclass field that `state_of` leaves out and `from_state` takes from the caller."""


@runtime_checkable
class Stateful(Protocol):
    """An object whose state a checkpoint saves and restores."""

    def state(self) -> State:
        """Return everything that later behaviour depends on and that does not follow from the experiment."""

    def restore(self, state: State) -> None:
        """Continue from a saved state; called on a newly created object."""


class SavedAttributes:
    """Mixin of objects whose state is the values of some attributes: numbers, lists of them, and Counters."""

    saved: ClassVar[tuple[str, ...]]  # names of these attributes

    def state(self) -> State:
        """The values of the saved attributes, for a checkpoint."""
        return {name: state_of(getattr(self, name)) for name in self.saved}

    def restore(self, state: State) -> None:
        """Restore the saved attributes from a checkpoint."""
        for name in self.saved:
            setattr(self, name, Counter(state[name]) if isinstance(getattr(self, name), Counter) else state[name])


def optional_state(component: object) -> State | None:
    """The state of an object, or None if it is not `Stateful`."""
    return component.state() if isinstance(component, Stateful) else None


def state_of(value: Any) -> Any:
    """A dataclass as a dict of its saved fields, also inside dicts, lists and tuples; other values as they are."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: state_of(getattr(value, name)) for name, _ in _saved_fields(value.__class__)}
    if isinstance(value, dict):
        return {key: state_of(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [*map(state_of, value)] if isinstance(value, list) else (*map(state_of, value),)
    return value


def from_state(kind: type[T], state: Any, **shared: Any) -> T:
    """Rebuild a value of type `kind` from what `state_of` returned; fields that are not saved come from `shared`."""
    return cast(T, _from_state(kind, state, shared))


def _from_state(kind: Any, state: Any, shared: Mapping[str, Any]) -> Any:
    arguments = get_args(kind)
    if hasattr(kind, "__dataclass_fields__"):
        saved = {name: _from_state(hint, state[name], shared) for name, hint in _saved_fields(kind)}
        others = {field.name: shared[field.name] for field in fields(kind) if field.name in shared.keys() - saved}
        return kind(**saved, **others)
    if get_origin(kind) is list:
        return [_from_state(arguments[0], entry, shared) for entry in state]
    if get_origin(kind) is Counter:
        return Counter(state)
    if get_origin(kind) is UnionType and state is not None:
        return _from_state(next(filter(is_dataclass, arguments), Any), state, shared)
    return state


@cache
def _saved_fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Names and types of the fields of a dataclass that belong to its state."""
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in fields(kind) if field.metadata.get("saved", True))


def pack(state: Any, arrays: Arrays, name: str = "") -> Any:
    """Convert a state to JSON values; its arrays are stored in `arrays`, named by their path in the state."""
    if isinstance(state, np.ndarray) and not state.dtype.hasobject:  # which would need pickle
        while name in arrays:
            name += "'"  # two paths may be equal: the key "a/b", or the key "b" inside "a"
        arrays[name] = state
        return {_ARRAY: name}
    if isinstance(state, np.generic):
        return state.item()
    if isinstance(state, dict):
        return _pack_dict(state, arrays, name)
    if isinstance(state, (list, tuple)):
        values = [pack(value, arrays, f"{name}/{index}") for index, value in enumerate(state)]
        return values if isinstance(state, list) else {_TUPLE: values}
    if state is None or isinstance(state, (bool, int, float, str)):
        return state
    raise RunFailed(
        f"{name} of a checkpoint is a {type(state).__name__}: let state() return only numbers, text and arrays, "
        "in dicts, lists and tuples."
    )


def _pack_dict(state: dict[Any, Any], arrays: Arrays, name: str) -> dict[str, Any]:
    packed = [(key, pack(value, arrays, f"{name}/{key}".lstrip("/"))) for key, value in state.items()]
    plain = all(isinstance(key, str) for key in state) and set(state) not in ({_ARRAY}, {_PAIRS}, {_TUPLE})
    return dict(packed) if plain else {_PAIRS: [[pack(key, arrays, f"{name}/key"), value] for key, value in packed]}


def unpack(packed: Any, arrays: Arrays) -> Any:
    """Rebuild a state from its JSON values and arrays (the inverse of `pack`)."""
    if isinstance(packed, list):
        return [unpack(value, arrays) for value in packed]
    if not isinstance(packed, dict):
        return packed
    if packed.keys() == {_ARRAY}:
        return arrays[packed[_ARRAY]]
    if packed.keys() == {_TUPLE}:
        return tuple(unpack(packed[_TUPLE], arrays))
    if packed.keys() == {_PAIRS}:
        return {unpack(key, arrays): unpack(value, arrays) for key, value in packed[_PAIRS]}
    return {key: unpack(value, arrays) for key, value in packed.items()}
