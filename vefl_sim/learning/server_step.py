"""A step of the server with an optimizer of optax, whose state is a list of arrays that a checkpoint can hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np
import optax

from vefl_sim.learning.learner import Model
from vefl_sim.learning.network import split
from vefl_sim.learning.trees import minus, plus, tree_map


@dataclass(frozen=True)
class ServerStep:
    """ω ← ω − rate · direction(gradient), where the direction is that of an optimizer."""

    optimizer: str  # name of a function in optax, such as "scale_by_adam"
    rate: float
    options: Mapping[str, float]  # of this function

    def __call__(self, model: Model, gradient: Model, state: Sequence[np.ndarray]) -> tuple[Model, list[np.ndarray]]:
        """The next model and the next state; an empty state is the initial one. Statistics follow the mean change."""
        parameters, statistics = split(model)
        slope, change = split(gradient)
        optimizer = getattr(optax, self.optimizer)(**self.options)
        initial, structure = jax.tree.flatten(optimizer.init(parameters))
        direction, moments = optimizer.update(slope, jax.tree.unflatten(structure, state or initial), parameters)
        stepped = plus(parameters, tree_map(np.asarray, direction), -self.rate)
        return {**stepped, **minus(statistics, change)}, [np.asarray(leaf) for leaf in jax.tree.leaves(moments)]
