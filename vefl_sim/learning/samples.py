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

from vefl_sim.learning.datasets.dataset import Inputs, Targets
from vefl_sim.learning.learner import LocalJob
from vefl_sim.learning.model_card import PIXELS


class Samples(NamedTuple):
    """All inputs and targets of a training or test set."""

    inputs: jax.Array  # [samples, …]
    targets: jax.Array  # [samples, …]


class Block(NamedTuple):
    """Samples that a compiled step processes together."""

    inputs: jax.Array  # [block, …], scaled if they are pixels
    targets: jax.Array  # [block, …]
    weights: jax.Array  # float [block]: 1 for a sample, 0 for padding


def on_device(inputs: Inputs, targets: Targets) -> Samples:
    """Copy inputs and targets to JAX's default device."""
    return Samples(jnp.asarray(inputs), jnp.asarray(targets))


def padded(numbers: NDArray[np.integer], length: int) -> NDArray[np.int32]:
    """Sample numbers, padded with zeros at the end to this length."""
    return np.pad(numbers, (0, length - len(numbers))).astype(np.int32)


def padded_length(samples: int, block: int) -> int:
    """A power of two with room for the samples and one more block: few different lengths, so few compilations."""
    return int(2 ** np.ceil(np.log2(samples + block)))


def read_block(samples: Samples, numbers: jax.Array, first: jax.Array, left: jax.Array, size: int) -> Block:
    """Read the samples numbers[first : first + size]; the first `left` of them get weight 1, the others 0."""
    return _block(samples, lax.dynamic_slice_in_dim(numbers, first, size), left)


def read_repeated(samples: Samples, numbers: jax.Array, first: jax.Array, left: jax.Array, size: int) -> Block:
    """Like `read_block`, but a block with fewer samples than `size` repeats them, so that it holds no others.

    For networks that compute statistics over the whole block, also over the entries of weight 0.
    """
    return _block(samples, numbers[first + jnp.arange(size) % jnp.minimum(left, size)], left)


def _block(samples: Samples, chosen: jax.Array, left: jax.Array) -> Block:
    weights = (jnp.arange(len(chosen)) < left).astype(jnp.result_type(float))
    return Block(scaled(samples.inputs[chosen]), samples.targets[chosen], weights)


def scaled(inputs: jax.Array) -> jax.Array:
    """Inputs as a network gets them: 8-bit pixels as (x/255 − 1/2) / (1/4), other integers and floats unchanged."""
    if inputs.dtype == jnp.uint8:
        return cast(jax.Array, PIXELS(inputs.astype(jnp.result_type(float))))
    return inputs if jnp.issubdtype(inputs.dtype, jnp.integer) else inputs.astype(jnp.result_type(float))


@dataclass(frozen=True)
class Shuffling:
    """Random order of samples in each pass; it depends on (seed, CV, training order, iteration), not on past calls."""

    batch_size: int
    seed: int

    def order(self, job: LocalJob, iteration: int, size: int) -> NDArray[np.int64]:
        """A permutation of 0 … size − 1 for one iteration of a job."""
        return np.random.Generator(np.random.PCG64(order_seed(self.seed, job, iteration))).permutation(size)


def order_seed(seed: int, job: LocalJob, iteration: int) -> np.random.SeedSequence:
    """Seed of the random numbers of one iteration of a training order."""
    return np.random.SeedSequence(seed, spawn_key=(job.cv, job.number, iteration))
