import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.learning.plain_cnn import PlainCnn
from vefl_models.cnn import cnn
from vefl_models.gru import gru
from vefl_models.logistic import logistic
from vefl_models.mlp import mlp
from vefl_sim.learning.jax_learner import initial_model, parameter_count, parameter_shapes
from vefl_sim.learning.network import input_spec


def test_the_cnn_has_the_parameters_of_the_plain_one() -> None:
    ours, plain = (initial_model(module, input_spec((20, 20, 3), np.uint8), seed=2) for module in (cnn(7), PlainCnn(7)))
    assert jax.tree.structure(ours) == jax.tree.structure(plain)
    assert jax.tree.all(jax.tree.map(np.array_equal, ours, plain))


@pytest.mark.parametrize(
    ("factory", "parameters"), [(mlp, 16 * 17 * 3 * 64 + 64 + 64 * 5 + 5), (logistic, 816 * 5 + 5)]
)
def test_dense_models_take_any_image(factory, parameters: int) -> None:
    images = jnp.zeros((2, 16, 17, 3))
    outputs, _ = jax.eval_shape(factory(5).init_with_output, jax.random.key(0), images)
    assert outputs.shape == (2, 5)
    assert parameter_count(parameter_shapes(factory(5), input_spec((16, 17, 3), np.uint8))) == parameters


def test_the_recurrent_network_reads_a_series_from_its_first_to_its_last_step() -> None:
    module, series = gru(2), jax.random.normal(jax.random.key(1), (3, 5, 3))
    model, apply = jax.jit(module.init)(jax.random.key(0), series), jax.jit(module.apply)
    outputs = apply(model, series)
    assert outputs.shape == (3, 2)
    assert sum(leaf.size for leaf in jax.tree.leaves(model)) == 3554  # 3·(3 + 32)·32 + 4·32, and 32·2 + 2
    assert not np.allclose(apply(model, series[:, ::-1]), outputs)


def test_logistic_regression_starts_at_zero_and_the_cnn_has_the_papers_number_of_parameters() -> None:
    model = initial_model(logistic(4), input_spec((16, 16, 1), np.uint8), seed=1)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(model))
    assert parameter_count(parameter_shapes(cnn(10), input_spec((28, 28, 1), np.uint8))) == 21_840


@pytest.mark.parametrize(("factory", "image_px"), [(cnn, 16), (cnn, 23), (gru, 17)])
def test_any_image_size_gives_one_logit_per_class(factory, image_px: int) -> None:
    images = jnp.zeros((2, 16, image_px, 3))
    outputs, _ = jax.eval_shape(factory(7).init_with_output, jax.random.key(0), images)
    assert outputs.shape == (2, 7)
