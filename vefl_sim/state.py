"""What a part of a run has to remember so that it can go on: dicts of plain values and arrays, nested as it likes."""

from typing import Any, Protocol, runtime_checkable

import numpy as np

State = dict[str, Any]
_ARRAY = "array"  # {"array": name} stands for an array in what is written as JSON


@runtime_checkable
class Stateful(Protocol):
    """Somebody who can be asked for a state, and given one."""

    def state(self) -> State:
        """Everything that later behaviour depends on and that is not in the experiment."""
        ...

    def restore(self, state: State) -> None:
        """Be as when this state was asked for; called on one that is fresh."""
        ...


def generator_state(rng: np.random.Generator) -> State:
    """Where a random generator stands."""
    return dict(rng.bit_generator.state)


def restore_generator(rng: np.random.Generator, state: State) -> None:
    """Put a random generator there."""
    rng.bit_generator.state = state


def pack(state: Any, arrays: dict[str, np.ndarray], name: str = "") -> Any:
    """The same state as JSON can hold it; the arrays in it go into `arrays`, named by where they were."""
    if isinstance(state, np.ndarray):
        arrays[name] = state
        return {_ARRAY: name}
    if isinstance(state, dict):
        return {key: pack(value, arrays, f"{name}/{key}" if name else key) for key, value in state.items()}
    if isinstance(state, list):
        return [pack(value, arrays, f"{name}/{index}") for index, value in enumerate(state)]
    return state


def unpack(packed: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Undo `pack`."""
    if isinstance(packed, dict):
        if packed.keys() == {_ARRAY}:
            return arrays[packed[_ARRAY]]
        return {key: unpack(value, arrays) for key, value in packed.items()}
    return [unpack(value, arrays) for value in packed] if isinstance(packed, list) else packed
