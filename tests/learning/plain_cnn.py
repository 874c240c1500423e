"""The paper's CNN in standard flax layers, the reference for `vefl_models.cnn`."""

import jax
from flax import linen as nn


class PlainCnn(nn.Module):
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
