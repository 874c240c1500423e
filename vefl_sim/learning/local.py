"""Local training: l_v steps of full-batch descent on F_v(ω) + (μ/2)·‖ω − ω_k‖².

F_v is the mean cross-entropy over the CV's samples. `train_plain` says it in the plainest way and is the
oracle; `BlockDescent` gives the same result with one compilation for CVs of any size.

Why the loops of `BlockDescent` are Python's and not `lax.fori_loop`: XLA rewrites convolutions into the
form that its fast CPU kernel takes only at the top level of a program, not in the body of a loop, and there
the gradients of `nn.Conv` (`f01b_i01o->01bf` in the compiled text) run 4 to 5 times slower. One call per
block costs some 0.1 ms. Measured with the paper's CNN at 28×28×3, CVs of 30–400 samples, two shared cores,
in µs per sample and iteration: 810 with loops inside, 230–250 so, 140–180 with two CVs side by side, as
`JaxLearner` has them. Blocks of 16 samples were best: 8 cost more calls, and 32 fall out of the cache.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from numpy.typing import NDArray

from vefl_sim.learning.learner import LocalJob, Model
from vefl_sim.learning.samples import Samples, on_device, read_block, scaled

BLOCK = 16


class Descent(NamedTuple):
    """The parameters of local training."""

    learning_rate: float  # δ
    proximal_mu: float  # μ


def logits(module: nn.Module, model: Model, images: jax.Array) -> jax.Array:
    """What the network says about scaled images, [batch, classes]."""
    return cast(jax.Array, module.apply(model, images))


def cross_entropy(answers: jax.Array, labels: jax.Array) -> jax.Array:
    """−ln of the probability that the logits give to the label, for each image."""
    log_probabilities = jax.nn.log_softmax(answers)
    return -jnp.take_along_axis(log_probabilities, labels[:, None], axis=1)[:, 0]


def train_plain(
    module: nn.Module,
    model: Model,
    images: NDArray[np.uint8],
    labels: NDArray[np.int32],
    iterations: int,
    descent: Descent,
) -> Model:
    """One CV's training as the paper writes it."""
    x, y = scaled(jnp.asarray(images)), jnp.asarray(labels)

    def objective(local: Model) -> jax.Array:
        moved = jax.tree.map(lambda w, w_k: jnp.sum((w - w_k) ** 2), local, model)
        proximal = descent.proximal_mu / 2 * sum(jax.tree.leaves(moved))
        return cross_entropy(logits(module, local, x), y).mean() + proximal

    gradient = jax.jit(jax.grad(objective))
    local = model
    for _ in range(iterations):
        local = jax.tree.map(lambda w, g: w - descent.learning_rate * g, local, gradient(local))
    return local


class BlockDescent:
    """Local training of any CV, a block of samples at a time: ∇F_v is the sum over blocks, divided by D_v."""

    def __init__(
        self,
        module: nn.Module,
        images: NDArray[np.uint8],
        labels: NDArray[np.int32],
        shards: Mapping[int, NDArray[np.int64]],
        descent: Descent,
    ) -> None:
        """Lay the samples of each CV next to each other. `shards`: which samples a CV holds."""
        order = np.concatenate([np.empty(0, np.int64), *shards.values()])
        sizes = [len(shard) for shard in shards.values()]
        firsts = np.cumsum([0, *sizes])[:-1].tolist()
        self._spans = dict(zip(shards, zip(firsts, sizes, strict=True), strict=True))
        self._samples = on_device(images[order], labels[order], BLOCK)
        self._module, self._descent = module, descent

    def train(self, model: Model, job: LocalJob) -> Model:
        """ω_{v,k+1} of one CV, from ω_k = `model`."""
        _, size = self._spans[job.cv]
        local = model
        for _ in range(job.iterations):
            local = _step(local, model, self._gradient_sum(local, job.cv), size, self._descent)
        return local

    def _gradient_sum(self, local: Model, cv: int) -> Model:
        """D_v·∇F_v."""
        first, size = self._spans[cv]
        total = _zeros(local)
        for done in range(0, size, BLOCK):
            total = _add_block(self._module, local, total, self._samples, first + done, size - done)
        return total


@partial(jax.jit, static_argnums=0)
def _add_block(
    module: nn.Module, local: Model, total: Model, samples: Samples, first: jax.Array, left: jax.Array
) -> Model:
    """`total` plus the gradient of the summed loss over one block."""
    block = read_block(samples, first, left, BLOCK)

    def loss(w: Model) -> jax.Array:
        return jnp.dot(block.weights, cross_entropy(logits(module, w, block.images), block.labels))

    return jax.tree.map(jnp.add, total, jax.grad(loss)(local))


@jax.jit
def _step(local: Model, start: Model, gradient_sum: Model, size: jax.Array, descent: Descent) -> Model:
    """ω − δ·(∇F_v + μ·(ω − ω_k))."""
    return jax.tree.map(
        lambda w, w_k, g: w - descent.learning_rate * (g / size + descent.proximal_mu * (w - w_k)),
        local,
        start,
        gradient_sum,
    )


@jax.jit
def _zeros(model: Model) -> Model:
    return jax.tree.map(jnp.zeros_like, model)
