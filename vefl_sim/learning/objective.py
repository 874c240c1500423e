"""The objective of training, the cross-entropy of a network's outputs; accuracy and loss on the test set."""

from functools import partial
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from numpy.typing import NDArray

from vefl_sim.learning.learner import Evaluation, Model
from vefl_sim.learning.samples import Samples, on_device, padded, padded_length, read_block


def logits(module: nn.Module, model: Model, images: jax.Array) -> jax.Array:
    """Outputs of the network for scaled images, [batch, classes]."""
    return cast(jax.Array, module.apply(model, images))


def cross_entropy(outputs: jax.Array, labels: jax.Array) -> jax.Array:
    """−ln of the probability that the logits give to the label, for each image."""
    log_probabilities = jax.nn.log_softmax(outputs)
    return -jnp.take_along_axis(log_probabilities, labels[:, None], axis=1)[:, 0]


BATCH = 128


class Evaluator:
    """A test set on which models are evaluated in batches of BATCH samples."""

    def __init__(
        self, module: nn.Module, images: NDArray[np.uint8], labels: NDArray[np.int32], classes: int | None = None
    ) -> None:
        """`classes`: their number, to count the predictions by class; None: they are not counted."""
        self._module, self._size, self._labels, self._classes = module, len(labels), labels, classes
        self._samples = on_device(images, labels)
        self._numbers = padded(np.arange(self._size), padded_length(self._size, BATCH))

    def evaluate(self, model: Model) -> Evaluation:
        """Accuracy (share of samples whose label has the largest logit), mean cross-entropy, predictions by class."""
        batches = [
            _score_batch(self._module, model, self._samples, self._numbers, first, self._size - first)
            for first in range(0, self._size, BATCH)
        ]
        batches = jax.device_get(batches)
        correct, loss = np.array([scores for *scores, _ in batches], np.float64).sum(axis=0) / self._size
        predicted = np.concatenate([classes for *_, classes in batches])[: self._size]
        return Evaluation(float(correct), float(loss), self._counts(predicted))

    def _counts(self, predicted: NDArray[np.int32]) -> NDArray[np.int64] | None:
        """Number of samples by true class (row) and predicted class (column).

        None if they are not counted, or if the network has more outputs than there are classes and predicts such one.
        """
        if self._classes is None or predicted.max() >= self._classes:
            return None
        pairs = self._labels.astype(np.int64) * self._classes + predicted
        return np.bincount(pairs, minlength=self._classes**2).reshape(self._classes, self._classes)


@partial(jax.jit, static_argnums=0)
def _score_batch(
    module: nn.Module, model: Model, samples: Samples, numbers: jax.Array, first: jax.Array, left: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Number of correct predictions and summed loss of one batch, and the predicted class of each sample."""
    batch = read_block(samples, numbers, first, left, BATCH)
    outputs = logits(module, model, batch.images)
    predicted = jnp.argmax(outputs, axis=1)
    hits = predicted == batch.labels
    losses = cross_entropy(outputs, batch.labels)
    return jnp.dot(batch.weights, hits), jnp.dot(batch.weights, losses), predicted
