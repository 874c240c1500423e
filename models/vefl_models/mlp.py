"""Dense layers only: pixels, one hidden layer, one output per class."""

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
    """The factory named in an experiment."""
    return Mlp(classes)
