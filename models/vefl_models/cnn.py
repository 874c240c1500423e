"""The CNN of the paper: two convolutions with pooling, one hidden layer, one output per class."""

import jax
from flax import linen as nn
from flax.linen.dtypes import promote_dtype

from vefl_sim.learning.conv.pooled_conv import pooled_conv


class Cnn(nn.Module):
    """5×5 valid convolutions of 10 and 20 channels, 50 hidden units; batch first, channels last.

    At 28×28×1 with 10 classes it has 21,840 parameters. The paper gives the layers but no widths; these are
    common for such networks. Images need at least 16 × 16 pixels.
    """

    classes: int

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        """Logits, [batch, classes]."""
        x = images
        for i, channels in enumerate((10, 20)):
            x = PooledConv(channels, name=f"Conv_{i}")(x)
        x = x.reshape(len(x), -1)
        x = nn.relu(nn.Dense(50)(x))
        return nn.Dense(self.classes)(x)


class PooledConv(nn.Module):
    """relu(max_pool(conv(x))), with the parameters of `nn.Conv(channels, (5, 5), padding="VALID")`."""

    channels: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Output of the layer, [batch, height′, width′, channels]."""
        kernel = self.param("kernel", nn.initializers.lecun_normal(), (5, 5, x.shape[-1], self.channels))
        bias = self.param("bias", nn.initializers.zeros, (self.channels,))
        return pooled_conv(*promote_dtype(x, kernel, bias))


def cnn(classes: int) -> nn.Module:
    """Factory for `model.factory = "vefl_models.cnn:cnn"`."""
    return Cnn(classes)
