"""A flax network as the learner calls it: in evaluation, and in training with its dropout and batch statistics.

A model is the pytree that the network's `init` returns: the collection `params`, which is trained, and any others, here
called statistics (BatchNorm's running averages). A network whose `__call__` has an argument `train` is told by it
which of the two it is; only such a network can have dropout or statistics.
"""

import inspect
from typing import Any, cast

import jax
import jax.numpy as jnp
from flax import errors
from flax import linen as nn

from vefl_sim.core.errors import ExperimentError
from vefl_sim.learning.learner import Model
from vefl_sim.learning.model_card import PIXELS

Statistics = dict[str, Any]
"""The collections of a model that are not trained; empty for most networks."""


def takes_train(module: nn.Module) -> bool:
    """Whether the network behaves differently in training: its `__call__` has an argument `train`."""
    return "train" in inspect.signature(type(module).__call__).parameters


def input_spec(input_shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    """Shape and type of a batch of one input, as the network gets it from a data set of this type."""
    integers = jnp.issubdtype(dtype, jnp.integer) and dtype != jnp.uint8
    return jax.ShapeDtypeStruct((1, *input_shape), jnp.int32 if integers else jnp.result_type(float))  # type: ignore[no-untyped-call]


def scaled(inputs: jax.Array) -> jax.Array:
    """Inputs as a network gets them: 8-bit pixels as (x/255 − 1/2) / (1/4), other integers and floats unchanged."""
    if inputs.dtype == jnp.uint8:
        return cast(jax.Array, PIXELS(inputs.astype(jnp.result_type(float))))
    return inputs if jnp.issubdtype(inputs.dtype, jnp.integer) else inputs.astype(jnp.result_type(float))


def initialize(module: nn.Module, seed: Any, spec: jax.ShapeDtypeStruct) -> Model:
    """The initial model of a network, drawn with a 32-bit seed."""
    return module.init(jax.random.key(seed), jnp.zeros(spec.shape, spec.dtype), **_in_evaluation(module))


def outputs_of(module: nn.Module, model: Model, inputs: jax.Array) -> jax.Array:
    """Outputs of the network in evaluation, [batch, …]."""
    return cast(jax.Array, module.apply(model, inputs, **_in_evaluation(module)))


def _in_evaluation(module: nn.Module) -> dict[str, Any]:
    return {"train": False} if takes_train(module) else {}


def training_outputs(
    module: nn.Module, model: Model, inputs: jax.Array, key: jax.Array | None
) -> tuple[jax.Array, Statistics]:
    """Outputs of the network in training, and its statistics after this batch; `key`: for dropout."""
    if not takes_train(module):
        return cast(jax.Array, module.apply(model, inputs)), {}
    others = [name for name in model if name != "params"]
    outputs, changed = module.apply(model, inputs, train=True, rngs={"dropout": cast(jax.Array, key)}, mutable=others)
    return cast(jax.Array, outputs), dict(changed)


def require_usable(module: nn.Module, spec: jax.ShapeDtypeStruct, name: str) -> None:
    """Refuse a network that cannot be trained here, with a sentence; errors of the network itself pass through."""
    try:
        hash(module)
    except TypeError:
        raise ExperimentError(
            f"model.factory: {type(module).__name__} has a mutable field, such as a list: use a tuple."
        ) from None
    arguments = [*inspect.signature(type(module).__call__).parameters.values()][2:]
    if unknown := [
        a.name for a in arguments if a.name != "train" and a.default is a.empty and a.kind < a.VAR_POSITIONAL
    ]:
        raise ExperimentError(
            f'model.factory = "{name}": {type(module).__name__}.__call__ needs the argument {unknown[0]!r}: the '
            "learner passes the inputs and, if there is such an argument, `train` (False in evaluation)."
        )
    shapes = jax.eval_shape(lambda: initialize(module, 0, spec))
    if (others := [collection for collection in shapes if collection != "params"]) and not takes_train(module):
        raise ExperimentError(
            f'model.factory = "{name}": {type(module).__name__} keeps {others[0]!r} besides its parameters, but cannot '
            "know whether it is trained: give its __call__ an argument `train`, for example for "
            "nn.BatchNorm(use_running_average=not train), or use nn.LayerNorm or nn.GroupNorm."
        )
    try:
        jax.eval_shape(lambda model: outputs_of(module, model, jnp.zeros(spec.shape, spec.dtype)), shapes)
    except errors.InvalidRngError:
        raise ExperimentError(
            f'model.factory = "{name}": {type(module).__name__} draws random numbers (dropout) also in evaluation: '
            "give its __call__ an argument `train`, for example for nn.Dropout(0.5, deterministic=not train)."
        ) from None
