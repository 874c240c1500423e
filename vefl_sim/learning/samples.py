"""Samples on the device, read in blocks of a fixed size.

Compiled code has fixed shapes and CVs have any number of samples. So a block is read by the numbers of its samples, and
those past the last that counts get weight 0.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from vefl_sim.learning.learner import LocalJob


class Samples(NamedTuple):
    """All images and labels there are."""

    images: jax.Array  # uint8 [samples, height, width, channels]
    labels: jax.Array  # int32 [samples]


class Block(NamedTuple):
    """What a compiled step works on."""

    images: jax.Array  # float [block, height, width, channels]
    labels: jax.Array  # int32 [block]
    weights: jax.Array  # float [block]: 1 for a sample, 0 for filling


def on_device(images: NDArray[np.uint8], labels: NDArray[np.int32]) -> Samples:
    """Copy to the device."""
    return Samples(jnp.asarray(images), jnp.asarray(labels))


def padded(numbers: NDArray[np.integer], room: int) -> NDArray[np.int32]:
    """Sample numbers with zeros behind, `room` in all."""
    return np.pad(numbers, (0, room - len(numbers))).astype(np.int32)


def room_for(samples: int, block: int) -> int:
    """A power of two that leaves a whole block free behind so many samples: few sizes, so few compilations."""
    return int(2 ** np.ceil(np.log2(samples + block)))


def read_block(samples: Samples, numbers: jax.Array, first: jax.Array, left: jax.Array, size: int) -> Block:
    """The samples numbers[first : first + size], of which only the next `left` count."""
    chosen = lax.dynamic_slice_in_dim(numbers, first, size)
    weights = jnp.arange(size) < left
    return Block(scaled(samples.images[chosen]), samples.labels[chosen], weights.astype(jnp.result_type(float)))


def scaled(images: jax.Array) -> jax.Array:
    """8-bit pixels as floats of about zero mean and unit variance: (x/255 − 1/2) / (1/4)."""
    return (images.astype(jnp.result_type(float)) / 255 - 0.5) / 0.25


@dataclass(frozen=True)
class Shuffling:
    """Draws an order for every pass. It belongs to (seed, CV, order, iteration), never to the order of calls."""

    batch_size: int
    seed: int

    def order(self, job: LocalJob, iteration: int, size: int) -> NDArray[np.int64]:
        """A permutation of 0 … size − 1 for one iteration of a job."""
        key = np.random.SeedSequence(self.seed, spawn_key=(job.cv, job.number, iteration))
        return np.random.Generator(np.random.PCG64(key)).permutation(size)
