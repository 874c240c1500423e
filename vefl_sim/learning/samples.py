"""Samples on the device, read in blocks of a fixed size.

Compiled code has fixed shapes and CVs have any number of samples. So all samples lie in one array, those of a
CV next to each other; a block is a slice at any position, and samples past the CV's last get weight 0.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray


class Samples(NamedTuple):
    """Images and labels, with room for one whole block after the last."""

    images: jax.Array  # uint8 [samples + block, height, width, channels]
    labels: jax.Array  # int32 [samples + block]


class Block(NamedTuple):
    """What a compiled step works on."""

    images: jax.Array  # float [block, height, width, channels]
    labels: jax.Array  # int32 [block]
    weights: jax.Array  # float [block]: 1 for a sample, 0 for filling


def on_device(images: NDArray[np.uint8], labels: NDArray[np.int32], block: int) -> Samples:
    """Copy to the device, with `block` rows of filling at the end."""
    filling = [(0, block)] + [(0, 0)] * 3
    return Samples(jnp.asarray(np.pad(images, filling)), jnp.asarray(np.pad(labels, (0, block))))


def read_block(samples: Samples, first: jax.Array, left: jax.Array, size: int) -> Block:
    """`size` samples from number `first` on, of which only the next `left` count."""
    images = lax.dynamic_slice_in_dim(samples.images, first, size)
    labels = lax.dynamic_slice_in_dim(samples.labels, first, size)
    weights = jnp.arange(size) < left
    return Block(scaled(images), labels, weights.astype(jnp.result_type(float)))


def scaled(images: jax.Array) -> jax.Array:
    """8-bit pixels as floats of about zero mean and unit variance: (x/255 − 1/2) / (1/4)."""
    return (images.astype(jnp.result_type(float)) / 255 - 0.5) / 0.25
