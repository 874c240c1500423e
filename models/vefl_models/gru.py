"""A small recurrent network: a gated recurrent unit reads a series step by step; a dense layer gives the outputs."""

from typing import cast

import jax
from flax import linen as nn


class Gru(nn.Module):
    """One GRU layer and one dense layer; takes series [batch, steps, …], the oldest step first."""

    outputs: int
    hidden: int = 32

    @nn.compact
    def __call__(self, series: jax.Array) -> jax.Array:
        """Outputs after the last step, [batch, outputs]."""
        steps = series.reshape(*series.shape[:2], -1)
        states = cast(jax.Array, nn.RNN(nn.GRUCell(self.hidden))(steps))
        return nn.Dense(self.outputs)(states[:, -1])


def gru(outputs: int) -> nn.Module:
    """Factory for `model.factory = "vefl_models.gru:gru"`."""
    return Gru(outputs)
