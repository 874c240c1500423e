"""A simple and slow version of local training, the reference for `local`."""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from numpy.typing import NDArray

from vefl_sim.learning.learner import Model
from vefl_sim.learning.local import Descent
from vefl_sim.learning.objective import cross_entropy, logits
from vefl_sim.learning.samples import scaled


def train_plain(
    module: nn.Module, model: Model, images: NDArray[np.uint8], labels: NDArray[np.int32], iterations: int,
    descent: Descent,
) -> Model:  # fmt: skip
    """One CV's training as the paper writes it: one step on all samples per iteration, or per n iterations."""
    whole, rest = divmod(iterations, descent.iterations_per_step)
    merged = [descent.iterations_per_step] * whole + [rest] * (rest > 0)
    return descend(module, model, [(images, labels)] * len(merged), descent, merged)


def descend(
    module: nn.Module, model: Model, batches: Sequence[tuple[NDArray[np.uint8], NDArray[np.int32]]], descent: Descent,
    merged: Sequence[int] | None = None,
) -> Model:  # fmt: skip
    """ω ← ω − n·δ·∇[F(ω) + (μ/2)·‖ω − ω_k‖²], one step per batch; F: mean cross-entropy over the batch.

    `merged`: n of each step; 1 if not given.
    """

    local = model
    for (images, labels), n in zip(batches, merged or [1] * len(batches), strict=True):
        slope = _gradient(module, local, model, scaled(jnp.asarray(images)), jnp.asarray(labels), descent.proximal_mu)
        local = jax.tree.map(partial(_stepped, n * descent.learning_rate), local, slope)
    return local


@partial(jax.jit, static_argnums=0)
def _gradient(module: nn.Module, local: Model, start: Model, x: jax.Array, y: jax.Array, mu: float) -> Model:
    def objective(w: Model) -> jax.Array:
        squares = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), w, start)
        return cross_entropy(logits(module, w, x), y).mean() + mu / 2 * sum(jax.tree.leaves(squares))

    return jax.grad(objective)(local)


def _stepped(step: float, weights: jax.Array, slope: jax.Array) -> jax.Array:
    return weights - step * slope
