"""What a part of a run has to remember so that it can go on: plain values and arrays, nested as it likes."""

from typing import Any, Protocol, runtime_checkable

import numpy as np

from vefl_sim.core.errors import RunFailed

State = dict[str, Any]
Arrays = dict[str, np.ndarray]
_ARRAY, _PAIRS, _TUPLE = "array", "pairs", "tuple"  # what JSON does not know, as a dict with this one key


@runtime_checkable
class Stateful(Protocol):
    """Somebody who can be asked for a state, and given one."""

    def state(self) -> State:
        """Everything that later behaviour depends on and that is not in the experiment."""
        ...

    def restore(self, state: State) -> None:
        """Be as when this state was asked for; called on one that is fresh."""
        ...


def optional_state(part: object) -> State | None:
    """The state of a part, if it can tell it."""
    return part.state() if isinstance(part, Stateful) else None


def generator_state(rng: np.random.Generator) -> State:
    """Where a random generator stands."""
    return dict(rng.bit_generator.state)


def restore_generator(rng: np.random.Generator, state: State) -> None:
    """Put a random generator there."""
    rng.bit_generator.state = state


def pack(state: Any, arrays: Arrays, name: str = "") -> Any:
    """The same state as JSON can hold it; the arrays in it go into `arrays`, named by where they were."""
    if isinstance(state, np.ndarray) and state.dtype != object:
        while name in arrays:
            name += "'"  # two places may have one name: "a/b" in one dict, or "b" in its "a"
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
    raise RunFailed(f"{name} of a checkpoint is a {type(state).__name__}: state() may give numbers, text and arrays.")


def _pack_dict(state: dict[Any, Any], arrays: Arrays, name: str) -> dict[str, Any]:
    packed = [(key, pack(value, arrays, f"{name}/{key}".lstrip("/"))) for key, value in state.items()]
    plain = all(isinstance(key, str) for key in state) and set(state) not in ({_ARRAY}, {_PAIRS}, {_TUPLE})
    return dict(packed) if plain else {_PAIRS: [[pack(key, arrays, f"{name}/key"), value] for key, value in packed]}


def unpack(packed: Any, arrays: Arrays) -> Any:
    """Undo `pack`."""
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
