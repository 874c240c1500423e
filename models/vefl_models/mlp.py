"""A multilayer perceptron: dense layers from pixels to one hidden layer to one output per class."""

import jax
from flax import linen as nn


class Mlp(nn.Module):
    """One hidden layer with ReLU; takes images of any size, batch first."""

    classes: int
    hidden: int = 64

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        """Logits, [batch, classes]."""
        x = images.reshape(len(images), -1)
        x = nn.relu(nn.Dense(self.hidden)(x))
        return nn.Dense(self.classes)(x)


def mlp(classes: int) -> nn.Module:
    """Factory for `model.factory = "vefl_models.mlp:mlp"`."""
    return Mlp(classes)
