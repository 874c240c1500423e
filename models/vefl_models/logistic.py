"""Multinomial logistic regression: a convex problem, to which convergence theory applies."""

import jax
from flax import linen as nn


class Logistic(nn.Module):
    """One dense layer from pixels to classes, starting at zero; takes images of any size, batch first."""

    classes: int

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        """Logits, [batch, classes]."""
        return nn.Dense(self.classes, kernel_init=nn.initializers.zeros)(images.reshape(len(images), -1))


def logistic(classes: int) -> nn.Module:
    """Factory for `model.factory = "vefl_models.logistic:logistic"`."""
    return Logistic(classes)
