"""Simple, slow versions of local training and of the CNN, the references for `local` and `vefl_models.cnn`."""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
from flax import linen as nn

from vefl_sim.learning.datasets.dataset import Inputs, Targets
from vefl_sim.learning.learner import Model
from vefl_sim.learning.local import Descent
from vefl_sim.learning.losses import CROSS_ENTROPY, Loss
from vefl_sim.learning.network import outputs_of, scaled


class PlainCnn(nn.Module):
    """The paper's CNN in standard flax layers."""

    classes: int

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        x = images
        for channels in (10, 20):
            x = nn.Conv(channels, (5, 5), padding="VALID")(x)
            x = nn.relu(nn.max_pool(x, (2, 2), strides=(2, 2)))
        x = x.reshape(len(x), -1)
        x = nn.relu(nn.Dense(50)(x))
        return nn.Dense(self.classes)(x)


def train_plain(
    module: nn.Module, model: Model, inputs: Inputs, targets: Targets, iterations: int, descent: Descent,
    loss: Loss = CROSS_ENTROPY,
) -> Model:  # fmt: skip
    """One CV's training as the paper writes it: one step on all samples per iteration, or per n iterations."""
    whole, rest = divmod(iterations, descent.iterations_per_step)
    merged = [descent.iterations_per_step] * whole + [rest] * (rest > 0)
    return descend(module, model, [(inputs, targets)] * len(merged), descent, merged, loss)


def descend(
    module: nn.Module, model: Model, batches: Sequence[tuple[Inputs, Targets]], descent: Descent,
    merged: Sequence[int] | None = None, loss: Loss = CROSS_ENTROPY,
) -> Model:  # fmt: skip
    """ω ← ω − n·δ·∇[F(ω) + (μ/2)·‖ω − ω_k‖²], one step per batch; F: mean loss over the batch.

    `merged`: n of each step; 1 if not given.
    """

    local = model
    for (inputs, targets), n in zip(batches, merged or [1] * len(batches), strict=True):
        x, y = scaled(jnp.asarray(inputs)), jnp.asarray(targets)
        slope = gradient(module, loss, local, model, x, y, descent.proximal_mu)
        local = jax.tree.map(partial(_stepped, n * descent.learning_rate), local, slope)
    return local


@partial(jax.jit, static_argnums=(0, 1))
def gradient(module: nn.Module, loss: Loss, local: Model, start: Model, x: jax.Array, y: jax.Array, mu: float) -> Model:
    def objective(w: Model) -> jax.Array:
        squares = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), w, start)
        mean: jax.Array = loss(outputs_of(module, w, x), y).mean()
        return mean + mu / 2 * sum(jax.tree.leaves(squares))

    return jax.grad(objective)(local)


def _stepped(step: float, weights: jax.Array, slope: jax.Array) -> jax.Array:
    return weights - step * slope
