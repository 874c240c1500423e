"""What is minimised: the cross-entropy of a network's answers."""

from typing import cast

import jax
import jax.numpy as jnp
from flax import linen as nn

from vefl_sim.learning.learner import Model


def logits(module: nn.Module, model: Model, images: jax.Array) -> jax.Array:
    """What the network says about scaled images, [batch, classes]."""
    return cast(jax.Array, module.apply(model, images))


def cross_entropy(answers: jax.Array, labels: jax.Array) -> jax.Array:
    """−ln of the probability that the logits give to the label, for each image."""
    log_probabilities = jax.nn.log_softmax(answers)
    return -jnp.take_along_axis(log_probabilities, labels[:, None], axis=1)[:, 0]
