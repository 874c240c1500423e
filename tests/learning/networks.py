"""Small networks with batch statistics and dropout, and losses and data sets of a user, for tests."""

import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.datasets.dataset import Dataset


class Normed(nn.Module):
    """A linear layer after BatchNorm, with dropout."""

    outputs: int
    rate: float = 0.0

    @nn.compact
    def __call__(self, inputs, train: bool):  # type: ignore[no-untyped-def]
        x = inputs.reshape(len(inputs), -1).astype(jnp.result_type(float))
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        x = nn.Dropout(self.rate, deterministic=not train)(x)
        return nn.Dense(self.outputs)(x)


def normed(outputs: int) -> nn.Module:
    return Normed(outputs, rate=0.25)


class Half(nn.Module):
    """A linear layer with parameters of 16 bits."""

    outputs: int

    @nn.compact
    def __call__(self, inputs):  # type: ignore[no-untyped-def]
        return nn.Dense(self.outputs, param_dtype=jnp.bfloat16)(inputs.reshape(len(inputs), -1))


def half(outputs: int) -> nn.Module:
    return Half(outputs)


class WithoutTrain(nn.Module):
    """BatchNorm that cannot know whether it is trained."""

    outputs: int

    @nn.compact
    def __call__(self, inputs):  # type: ignore[no-untyped-def]
        return nn.Dense(self.outputs)(nn.BatchNorm(use_running_average=False)(inputs))


class WithDeterministic(nn.Module):
    """A network with an argument that nobody passes."""

    outputs: int

    @nn.compact
    def __call__(self, inputs, deterministic):  # type: ignore[no-untyped-def]
        return nn.Dropout(0.5)(nn.Dense(self.outputs)(inputs), deterministic)


class AlwaysDrops(nn.Module):
    """Dropout that is never switched off."""

    outputs: int

    @nn.compact
    def __call__(self, inputs):  # type: ignore[no-untyped-def]
        return nn.Dropout(0.5, deterministic=False)(nn.Dense(self.outputs)(inputs))


class Words(nn.Module):
    """Embeds integers."""

    outputs: int

    @nn.compact
    def __call__(self, tokens):  # type: ignore[no-untyped-def]
        return nn.Dense(self.outputs)(nn.Embed(7, 4)(tokens).mean(axis=1))


def plane(experiment: Experiment, streams: Streams) -> Dataset:
    """Regression: two linear functions of three numbers, with a little noise."""
    rng = streams.generator("plane")
    x = rng.normal(size=(600, 3)).astype(np.float32)
    y = x @ np.array([[1.0, 0.0], [-2.0, 0.5], [0.5, 3.0]]) + 1.0 + 0.01 * rng.normal(size=(600, 2))
    return Dataset("plane", x[100:], y[100:].astype(np.float32), x[:100], y[:100].astype(np.float32))


def sentences(experiment: Experiment, streams: Streams) -> Dataset:
    """Classification of token sequences: which of two words is more frequent."""
    rng = streams.generator("sentences")
    tokens = rng.integers(0, 7, (600, 9), dtype=np.int16)
    labels = ((tokens == 1).sum(axis=1) > (tokens == 2).sum(axis=1)).astype(np.int32)
    return Dataset("sentences", tokens[100:], labels[100:], tokens[:100], labels[:100], classes=2)


def absolute(outputs, targets):  # type: ignore[no-untyped-def]
    """Mean absolute error of each sample."""
    return jnp.abs(outputs - targets).mean(axis=1)


def summed(outputs, targets):  # type: ignore[no-untyped-def]
    """A loss that forgets the samples."""
    return ((outputs - targets) ** 2).mean()
