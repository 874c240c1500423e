import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.learning.plain import PlainCnn
from vefl_models.cnn import cnn
from vefl_models.gru import gru
from vefl_models.logistic import logistic
from vefl_models.mlp import mlp
from vefl_sim.learning.jax_learner import initial_model, parameter_shapes, sizes
from vefl_sim.learning.network import input_spec


def test_the_cnn_has_the_parameters_of_the_plain_one() -> None:
    ours, plain = (initial_model(module, input_spec((20, 20, 3), np.uint8), seed=2) for module in (cnn(7), PlainCnn(7)))
    assert jax.tree.structure(ours) == jax.tree.structure(plain)
    assert jax.tree.all(jax.tree.map(np.array_equal, ours, plain))


@pytest.mark.parametrize(
    ("factory", "shape", "parameters"),
    [
        (cnn, (28, 28, 1), 21_840 - 51 * 5),  # the paper's has ten outputs, and so 51 · 5 parameters more
        (cnn, (16, 23, 3), 250 * 3 + 10 + 5020 + (20 * 1 * 2 + 1) * 50 + 51 * 5),
        (mlp, (16, 17, 3), 816 * 64 + 64 + 64 * 5 + 5),
        (logistic, (16, 17, 3), 816 * 5 + 5),
        (gru, (5, 3), 3 * (3 + 32) * 32 + 4 * 32 + 32 * 5 + 5),
        (gru, (16, 17, 3), 3 * (51 + 32) * 32 + 4 * 32 + 32 * 5 + 5),
    ],
)
def test_inputs_of_any_size_give_one_output_per_class(factory, shape: tuple[int, ...], parameters: int) -> None:
    outputs, _ = jax.eval_shape(factory(5).init_with_output, jax.random.key(0), jnp.zeros((2, *shape)))
    assert outputs.shape == (2, 5)
    assert sizes(parameter_shapes(factory(5), input_spec(shape, np.uint8))) == (parameters, 0)


def test_the_recurrent_network_reads_a_series_from_its_first_to_its_last_step() -> None:
    module, series = gru(2), jax.random.normal(jax.random.key(1), (3, 5, 3))
    model, apply = jax.jit(module.init)(jax.random.key(0), series), jax.jit(module.apply)
    assert not np.allclose(apply(model, series[:, ::-1]), apply(model, series))


def test_logistic_regression_starts_at_zero() -> None:
    model = initial_model(logistic(4), input_spec((16, 16, 1), np.uint8), seed=1)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(model))
