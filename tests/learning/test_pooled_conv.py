from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vefl_sim.learning.conv.pooled_conv import compiled_pooled_conv, plain_pooled_conv, pooled_conv

Layer = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def arrays(height: int, width: int, channels: int, filters: int, side: int = 5) -> list[np.ndarray]:
    """x, W, b and the gradient of the result, of eleven samples: eight, which go together, and three."""
    rng = np.random.default_rng(height + filters)
    pooled = (11, (height - side + 1) // 2, (width - side + 1) // 2, filters)
    shapes = (11, height, width, channels), (side, side, channels, filters), (filters,), pooled
    return [rng.normal(size=shape) for shape in shapes]


def result_and_gradients(layer: Layer, inputs_and_gradient: list[np.ndarray]) -> list[np.ndarray]:
    @jax.jit
    def compiled(*inputs_and_gradient: jax.Array) -> tuple[jax.Array, ...]:
        *inputs, gradient = inputs_and_gradient
        result, pull = jax.vjp(layer, *inputs)
        return result, *pull(gradient)

    return [np.asarray(array) for array in compiled(*inputs_and_gradient)]


@pytest.mark.parametrize(
    ("shape", "dtype", "tolerance"),
    [
        ((28, 28, 1, 10), np.float64, 1e-13),  # the CNN's first layer
        ((12, 12, 10, 20), np.float32, 1e-5),  # its second
        ((17, 16, 3, 8), np.float64, 1e-13),  # odd side, one vector of filters
        ((9, 12, 2, 44, 3), np.float32, 1e-5),  # five and a half vectors of filters, smaller filters
        ((5, 5, 1, 1, 4), np.float64, 1e-13),  # one window, one filter
        ((2, 2, 1, 3, 1), np.float64, 1e-13),  # fewer pixels than a vector has numbers
    ],
)
def test_the_compiled_layer_and_its_gradients_equal_the_plain_ones(
    shape: tuple[int, ...], dtype: type, tolerance: float
) -> None:
    with jax.enable_x64(dtype is np.float64):
        cast = [array.astype(dtype) for array in arrays(*shape)]
        compiled, plain = (result_and_gradients(layer, cast) for layer in (compiled_pooled_conv, plain_pooled_conv))
    for ours, theirs in zip(compiled, plain, strict=True):
        assert ours.dtype == dtype
        assert np.abs(ours - theirs).max() <= tolerance * np.abs(theirs).max()


def test_samples_do_not_depend_on_their_neighbours_nor_on_whether_there_is_a_gradient() -> None:
    x, w, bias, _ = (jnp.asarray(array, jnp.float32) for array in arrays(12, 12, 10, 20))
    together = compiled_pooled_conv(x, w, bias)
    assert np.array_equal(together, jax.vjp(compiled_pooled_conv, x, w, bias)[0])
    for n in (7, 10):
        assert np.array_equal(together[n : n + 1], compiled_pooled_conv(x[n : n + 1], w, bias))
    assert np.isnan(compiled_pooled_conv(x, w * jnp.nan, bias)).all()


@pytest.mark.parametrize("layer", [compiled_pooled_conv, plain_pooled_conv])
def test_of_equal_sums_the_first_passes_the_gradient_on(layer: Layer) -> None:
    x, w, bias = jnp.ones((1, 6, 6, 1)), jnp.ones((5, 5, 1, 1)), jnp.zeros(1)
    dx = jax.grad(lambda x: layer(x, w, bias).sum())(x)
    assert np.array_equal(dx[0, :, :, 0], np.pad(np.ones((5, 5)), ((0, 1), (0, 1))))


@pytest.mark.parametrize(
    ("x", "w", "dtype", "sentence"),
    [
        ((1, 8, 8, 2), (3, 3, 1, 4), "float32", "do not fit together"),
        ((1, 8, 8, 2), (3, 3, 2, 4), "bfloat16", "make them the same"),
        ((1, 3, 8, 2), (3, 3, 2, 4), "float32", "too small"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(x, w, dtype: str, sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        pooled_conv(jnp.ones(x), jnp.ones(w, dtype), jnp.ones(4))


def test_other_number_types_use_the_plain_version() -> None:
    x, w, bias = (jnp.ones(shape, jnp.bfloat16) for shape in ((1, 8, 8, 2), (3, 3, 2, 4), (4,)))
    assert jnp.array_equal(pooled_conv(x, w, bias), plain_pooled_conv(x, w, bias))
