import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from vefl_models.cnn import cnn
from vefl_sim.learning.conv.pooled_conv import max_pool
from vefl_sim.learning.jax_learner import parameter_count, parameter_shapes
from vefl_sim.learning.network import input_spec


def test_the_cnn_has_the_papers_number_of_parameters() -> None:
    assert parameter_count(parameter_shapes(cnn(10), input_spec((28, 28, 1), np.uint8))) == 21_840


def test_every_layer_has_its_weights_and_biases() -> None:
    conv1, conv2 = 5 * 5 * 3 * 10 + 10, 5 * 5 * 10 * 20 + 20
    hidden, output = 4 * 4 * 20 * 50 + 50, 50 * 16 + 16
    shapes = parameter_shapes(cnn(16), input_spec((28, 28, 3), np.uint8))
    assert parameter_count(shapes) == conv1 + conv2 + hidden + output


@pytest.mark.parametrize("image_px", [16, 23, 40])
def test_any_image_size_gives_one_logit_per_class(image_px: int) -> None:
    images = jnp.zeros((2, image_px, image_px, 3))
    outputs, _ = jax.eval_shape(cnn(7).init_with_output, jax.random.key(0), images)
    assert outputs.shape == (2, 7)


def test_pooling_equals_that_of_flax() -> None:
    x = np.random.default_rng(0).normal(size=(2, 7, 6, 3)).astype(np.float32)
    assert np.array_equal(max_pool(jnp.asarray(x)), nn.max_pool(jnp.asarray(x), (2, 2), strides=(2, 2)))
