"""Samples on the device, read in blocks of a fixed size.

Compiled code has fixed shapes, but CVs hold any number of samples. So a block is read by sample numbers, and the
entries after the last sample get weight 0.
"""

from dataclasses import dataclass
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from vefl_sim.learning.learner import LocalJob
from vefl_sim.learning.model_card import PIXELS


class Samples(NamedTuple):
    """All images and labels of a training or test set."""

    images: jax.Array  # uint8 [samples, height, width, channels]
    labels: jax.Array  # int32 [samples]


class Block(NamedTuple):
    """Samples that a compiled step processes together."""

    images: jax.Array  # float [block, height, width, channels]
    labels: jax.Array  # int32 [block]
    weights: jax.Array  # float [block]: 1 for a sample, 0 for padding


def on_device(images: NDArray[np.uint8], labels: NDArray[np.int32]) -> Samples:
    """Copy images and labels to JAX's default device."""
    return Samples(jnp.asarray(images), jnp.asarray(labels))


def padded(numbers: NDArray[np.integer], length: int) -> NDArray[np.int32]:
    """Sample numbers, padded with zeros at the end to this length."""
    return np.pad(numbers, (0, length - len(numbers))).astype(np.int32)


def padded_length(samples: int, block: int) -> int:
    """A power of two with room for the samples and one more block: few different lengths, so few compilations."""
    return int(2 ** np.ceil(np.log2(samples + block)))


def read_block(samples: Samples, numbers: jax.Array, first: jax.Array, left: jax.Array, size: int) -> Block:
    """Read the samples numbers[first : first + size]; the first `left` of them get weight 1, the others 0."""
    chosen = lax.dynamic_slice_in_dim(numbers, first, size)
    weights = jnp.arange(size) < left
    return Block(scaled(samples.images[chosen]), samples.labels[chosen], weights.astype(jnp.result_type(float)))


def scaled(images: jax.Array) -> jax.Array:
    """8-bit pixels as floats of about zero mean and unit variance: (x/255 − 1/2) / (1/4)."""
    return cast(jax.Array, PIXELS(images.astype(jnp.result_type(float))))


@dataclass(frozen=True)
class Shuffling:
    """Random order of samples in each pass; it depends on (seed, CV, training order, iteration), not on past calls."""

    batch_size: int
    seed: int

    def order(self, job: LocalJob, iteration: int, size: int) -> NDArray[np.int64]:
        """A permutation of 0 … size − 1 for one iteration of a job."""
        key = np.random.SeedSequence(self.seed, spawn_key=(job.cv, job.number, iteration))
        return np.random.Generator(np.random.PCG64(key)).permutation(size)
