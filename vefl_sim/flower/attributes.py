"""What a strategy of Flower remembers: its attributes, as a checkpoint can hold them.

A saved value is a pair of its kind and its content, so that arrays, Flower's Parameters and a strategy inside of
another one come back as they were.
"""

import types
from typing import Any

import numpy as np

from vefl_sim.core.state import State

_CONSTANT = (types.FunctionType, types.BuiltinFunctionType, type)  # a new strategy has the same


class NotSaved(Exception):
    """An attribute that cannot be saved, as a clause for a sentence."""


def is_strategy(value: Any) -> bool:
    """Whether a value has the two methods of a strategy that we call."""
    return all(callable(getattr(value, method, None)) for method in ("configure_fit", "aggregate_fit"))


def saved(strategy: Any) -> State:
    """The attributes of a strategy."""
    state: State = {}
    for name, value in vars(strategy).items():
        try:
            if is_strategy(value):
                state[name] = "strategy", saved(value)
            elif isinstance(value, np.random.Generator):
                state[name] = "generator", value.bit_generator.state
            elif not isinstance(value, _CONSTANT):
                state[name] = _saved(value)
        except NotSaved as kind:
            raise NotSaved(f"{type(strategy).__name__}.{name} is {kind}") from None
    return state


def restore(strategy: Any, state: State) -> None:
    """Give a new strategy, made in the same way, the attributes that were saved."""
    for name, (kind, content) in state.items():
        if kind == "strategy":
            restore(getattr(strategy, name), content)
        elif kind == "generator":
            getattr(strategy, name).bit_generator.state = content
        else:
            setattr(strategy, name, _restored(kind, content))


def _saved(value: Any) -> tuple[str, Any]:
    if value is None or type(value) in (bool, int, float, str):
        return "plain", value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return "array", value
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return "scalar", np.asarray(value)
    if type(value) in (list, tuple):
        return type(value).__name__, [_saved(entry) for entry in value]
    if type(value) is dict:
        return "dict", {key: _saved(entry) for key, entry in value.items()}
    if hasattr(value, "tensors") and hasattr(value, "tensor_type"):  # Parameters
        return "parameters", (value.tensor_type, [np.frombuffer(tensor, np.uint8) for tensor in value.tensors])
    raise NotSaved(f"a {type(value).__name__}")


def _restored(kind: str, content: Any) -> Any:
    if kind in ("list", "tuple"):
        entries = [_restored(*entry) for entry in content]
        return entries if kind == "list" else tuple(entries)
    if kind == "dict":
        return {key: _restored(*entry) for key, entry in content.items()}
    if kind == "parameters":
        from flwr.common import Parameters

        return Parameters(tensor_type=content[0], tensors=[tensor.tobytes() for tensor in content[1]])
    return content[()] if kind == "scalar" else content
