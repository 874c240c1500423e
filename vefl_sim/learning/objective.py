"""Samples on the device, read in blocks of a fixed size, and the loss of a model on them, for example on the test set.

Compiled code has fixed shapes, but CVs hold any number of samples. So a block is read by sample numbers, and the
entries after the last sample get weight 0.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import lax
from numpy.typing import NDArray

from vefl_sim.learning.datasets.dataset import Inputs, Targets
from vefl_sim.learning.learner import Evaluation, LocalLoss, Model
from vefl_sim.learning.losses import CROSS_ENTROPY, Loss
from vefl_sim.learning.network import outputs_of, scaled

BATCH = 128


class Samples(NamedTuple):
    """All inputs and targets of a training or test set, on JAX's default device."""

    inputs: jax.Array  # [samples, …]
    targets: jax.Array  # [samples, …]


class Block(NamedTuple):
    """Samples that a compiled step processes together."""

    inputs: jax.Array  # [block, …], scaled if they are pixels
    targets: jax.Array  # [block, …]
    weights: jax.Array  # float [block]: 1 for a sample, 0 for padding


def padded(numbers: NDArray[np.integer], length: int) -> NDArray[np.int32]:
    """Sample numbers, padded with zeros at the end to this length."""
    return np.pad(numbers, (0, length - len(numbers))).astype(np.int32)


def padded_length(samples: int, block: int) -> int:
    """A power of two with room for the samples and one more block: few different lengths, so few compilations."""
    return int(2 ** np.ceil(np.log2(samples + block)))


def read_block(
    samples: Samples, numbers: jax.Array, first: jax.Array, left: jax.Array, size: int, *, repeated: bool = False
) -> Block:
    """Read the samples numbers[first : first + size]; the first `left` of them get weight 1, the others 0.

    `repeated`: a block with fewer samples than `size` repeats them, so that it holds no others; for networks that
    compute statistics over the whole block, also over the entries of weight 0.
    """
    if repeated:
        chosen = numbers[first + jnp.arange(size) % jnp.minimum(left, size)]
    else:
        chosen = lax.dynamic_slice_in_dim(numbers, first, size)
    weights = (jnp.arange(size) < left).astype(jnp.result_type(float))
    return Block(scaled(samples.inputs[chosen]), samples.targets[chosen], weights)


class Objective(NamedTuple):
    """What is computed of each sample; compiled once for each combination."""

    module: nn.Module
    loss: Loss = CROSS_ENTROPY
    block: int = BATCH  # samples that are processed at once

    def on(
        self, samples: Samples, numbers: NDArray[np.int32], size: int, model: Model
    ) -> tuple[LocalLoss, NDArray[np.int32]]:
        """Loss of a model on the first `size` samples of `numbers`, and the output that is largest for each."""
        firsts = range(0, size, self.block)
        scores = jax.device_get([_score_block(self, model, samples, numbers, first, size - first) for first in firsts])
        total, squares = np.array([sums for sums, _ in scores], np.float64).sum(axis=0) / size
        return LocalLoss(float(total), float(np.sqrt(squares))), np.concatenate([best for _, best in scores])[:size]


@partial(jax.jit, static_argnums=0)
def _score_block(
    objective: Objective, model: Model, samples: Samples, numbers: jax.Array, first: jax.Array, left: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Sum of the losses of one block, and of their squares; which output is largest for each sample."""
    block = read_block(samples, numbers, first, left, objective.block)
    outputs = outputs_of(objective.module, model, block.inputs)
    losses = objective.loss(outputs, block.targets)
    sums = jnp.stack([jnp.dot(block.weights, losses), jnp.dot(block.weights, losses**2)])
    return sums, jnp.argmax(outputs.reshape(objective.block, -1), axis=1)


class Evaluator:
    """A test set on which models are evaluated."""

    def __init__(
        self, objective: Objective, samples: tuple[Inputs, Targets], classes: int | None, *, counts: bool = True
    ) -> None:
        """`samples`: inputs and targets; `classes`: None if targets are no classes; `counts`: count predictions."""
        self._objective, self._targets, self._classes, self._has_counts = objective, samples[1], classes, counts
        self._samples = Samples(*map(jnp.asarray, samples))
        self._numbers = padded(np.arange(len(samples[1])), padded_length(len(samples[1]), objective.block))

    def evaluate(self, model: Model) -> Evaluation:
        """Mean loss; with classes also accuracy (share of samples whose class has the largest output) and counts."""
        loss, predicted = self._objective.on(self._samples, self._numbers, len(self._targets), model)
        if self._classes is None:
            return Evaluation(None, loss.mean)
        accuracy = float((predicted == self._targets).mean())
        return Evaluation(accuracy, loss.mean, self._counts(predicted, self._classes))

    def _counts(self, predicted: NDArray[np.int32], classes: int) -> NDArray[np.int64] | None:
        """Number of samples by true class (row) and predicted class (column).

        None if they are not counted, or if the network has more outputs than there are classes and predicts such one.
        """
        if not self._has_counts or predicted.max() >= classes:
            return None
        pairs = self._targets.astype(np.int64) * classes + predicted
        return np.bincount(pairs, minlength=classes**2).reshape(classes, classes)
