"""Accuracy and loss of a model on the test set."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from numpy.typing import NDArray

from vefl_sim.learning.datasets.dataset import Inputs, Targets
from vefl_sim.learning.learner import Evaluation, Model
from vefl_sim.learning.losses import CROSS_ENTROPY, Loss
from vefl_sim.learning.network import outputs_of
from vefl_sim.learning.samples import Samples, on_device, padded, padded_length, read_block

BATCH = 128


class Evaluator:
    """A test set on which models are evaluated in batches of BATCH samples."""

    def __init__(
        self,
        module: nn.Module,
        samples: tuple[Inputs, Targets],
        classes: int | None,
        loss: Loss = CROSS_ENTROPY,
        *,
        counts: bool = True,
    ) -> None:
        """`samples`: inputs and targets; `classes`: None if targets are no classes; `counts`: count predictions."""
        self._fixed, self._targets, self._classes = (module, loss, classes is not None), samples[1], classes
        self._size, self._has_counts = len(samples[1]), counts
        self._samples = on_device(*samples)
        self._numbers = padded(np.arange(self._size), padded_length(self._size, BATCH))

    def evaluate(self, model: Model) -> Evaluation:
        """Mean loss; with classes also accuracy (share of samples whose class has the largest output) and counts."""
        if self._classes is None:
            losses = [loss for (loss,) in self._batches(model)]
            return Evaluation(None, float(np.array(losses, np.float64).sum() / self._size))
        batches = self._batches(model)
        correct, loss = np.array([scores for *scores, _ in batches], np.float64).sum(axis=0) / self._size
        predicted = np.concatenate([classes for *_, classes in batches])[: self._size]
        return Evaluation(float(correct), float(loss), self._counts(predicted, self._classes))

    def _batches(self, model: Model) -> Any:
        """The scores of all batches."""
        arguments = *self._fixed, model, self._samples, self._numbers
        firsts = range(0, self._size, BATCH)
        return jax.device_get([_score_batch(*arguments, first, self._size - first) for first in firsts])

    def _counts(self, predicted: NDArray[np.int32], classes: int) -> NDArray[np.int64] | None:
        """Number of samples by true class (row) and predicted class (column).

        None if they are not counted, or if the network has more outputs than there are classes and predicts such one.
        """
        if not self._has_counts or predicted.max() >= classes:
            return None
        pairs = self._targets.astype(np.int64) * classes + predicted
        return np.bincount(pairs, minlength=classes**2).reshape(classes, classes)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _score_batch(
    module: nn.Module,
    loss: Loss,
    has_classes: bool,
    model: Model,
    samples: Samples,
    numbers: jax.Array,
    first: jax.Array,
    left: jax.Array,
) -> tuple[jax.Array, ...]:
    """With classes number of correct predictions, summed loss and predicted class of each sample; else the loss."""
    batch = read_block(samples, numbers, first, left, BATCH)
    outputs = outputs_of(module, model, batch.inputs)
    total = jnp.dot(batch.weights, loss(outputs, batch.targets))
    if not has_classes:
        return (total,)
    predicted = jnp.argmax(outputs, axis=1)
    return jnp.dot(batch.weights, predicted == batch.targets), total, predicted
