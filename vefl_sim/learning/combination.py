"""How the models of CVs become the next global model: by weighted changes, or by a step of an optimizer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np
import optax

from vefl_sim.learning.learner import Model
from vefl_sim.learning.trees import minus, plus, split, tree_map


def combine(model: Model, starts: Sequence[Model], updates: Sequence[Model], weights: Sequence[float]) -> Model:
    """model + Σ weight · (update − start), summed in the given order.

    Statistics (BatchNorm's) are averaged with the same weights: model · (1 − Σ weight) + Σ weight · update, where the
    weights are scaled to sum to at most one. So a variance is never negative, whatever the scheme.
    """
    combined, statistics = split(model)
    for start, update, weight in zip(starts, updates, weights, strict=True):
        combined = _add_update(combined, split(start)[0], split(update)[0], weight)
    return {**combined, **_averaged(statistics, updates, weights)} if statistics else combined


def _averaged(statistics: Model, updates: Sequence[Model], weights: Sequence[float]) -> Model:
    total = float(np.sum(weights))
    scale = 1 / max(1.0, total)
    averaged = jax.tree.map(lambda value: value * (1 - scale * total), statistics)
    for update, weight in zip(updates, weights, strict=True):
        averaged = _add_scaled(averaged, split(update)[1], scale * weight)
    return averaged


@jax.jit
def _add_update(combined: Model, start: Model, update: Model, weight: jax.Array) -> Model:
    return jax.tree.map(lambda c, w, u: c + weight * (u - w), combined, start, update)


@jax.jit
def _add_scaled(total: Model, model: Model, weight: jax.Array) -> Model:
    return jax.tree.map(lambda t, m: t + weight * m, total, model)


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
