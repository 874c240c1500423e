"""Parameters that fit a network or are refused with the array that does not, and what a model card may say."""

import json
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.learning.networks import half
from vefl_models.logistic import logistic
from vefl_models.mlp import mlp
from vefl_sim.core.arrays import read_npz
from vefl_sim.core.errors import BadInput
from vefl_sim.learning.jax_learner import array_name, initial_model
from vefl_sim.learning.model_card import PIXELS, ModelCard
from vefl_sim.learning.network import input_spec, scaled
from vefl_sim.learning.trained_model import TrainedModel, misfit, model_from
from vefl_sim.records.models import ModelFiles

SHAPE = (16, 16, 3)
SPEC = input_spec(SHAPE, np.uint8)
CARD = ModelCard("vefl_models.mlp:mlp", SHAPE, "uint8", PIXELS, 5, "cross-entropy", 5, ("a", "b", "c", "d", "e"))


def arrays_of(module: nn.Module) -> dict[str, np.ndarray]:
    leaves = jax.tree.leaves_with_path(initial_model(module, SPEC, seed=1))
    return {array_name(path): np.asarray(leaf) for path, leaf in leaves}


def trained(module: nn.Module, parameters: nn.Module | None = None) -> TrainedModel:
    """A network with its own parameters, or with those of another one."""
    return TrainedModel(CARD, arrays_of(parameters or module), Path("model.npz"), lambda: module)


def test_apply_is_the_network_on_scaled_images() -> None:
    model, images = trained(mlp(5)), np.random.default_rng(1).integers(0, 256, (7, *SHAPE), np.uint8)
    expected = mlp(5).apply(initial_model(mlp(5), SPEC, seed=1), (jnp.float32(images) / 255 - 0.5) / 0.25)
    assert np.allclose(model.apply(images), expected, atol=1e-6)
    assert np.array_equal(scaled(jnp.asarray(images)), CARD.scaling(jnp.float32(images)))
    for others in (images[..., :1], images[0]):
        with pytest.raises(ValueError, match=r"inputs must have the shape \(samples, 16, 16, 3\)"):
            model.apply(others)


def test_parameters_need_no_network() -> None:
    model = TrainedModel(CARD, arrays_of(mlp(5)), Path("model.npz"), load=None)  # type: ignore[arg-type]
    assert jax.tree.all(jax.tree.map(np.array_equal, model.parameters, initial_model(mlp(5), SPEC, seed=1)))


def test_parameters_of_another_network_are_refused() -> None:
    with pytest.raises(BadInput, match=r"^model\.npz does not fit vefl_models\.mlp:mlp, because the file has no .*: r"):
        trained(mlp(5), logistic(5)).apply(np.zeros((1, *SHAPE), np.uint8))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"more": np.zeros(1)}, "the network has no more"),
        ({"params.Dense_0.bias": np.zeros(6)}, "params.Dense_0.bias has the shape (6,) in the file and (5,) in"),
        ({"params.Dense_0.bias": np.full(5, 1j)}, "does not hold real numbers"),
        ({"params.Dense_0.bias": np.full(5, -np.inf)}, "NaN or infinite numbers"),
        ({"a" * 60_000: np.zeros(1)}, f"the network has no {'a' * 57}..."),
    ],
)
def test_what_does_not_fit_is_named(change: dict, fault: str) -> None:
    assert misfit(arrays_of(logistic(5)), logistic(5), SPEC) is None
    assert fault in (misfit(arrays_of(logistic(5)) | change, logistic(5), SPEC) or "")


@pytest.mark.parametrize("names", [("x.deeper", "x"), ("x.a.b", "y", "x")])
def test_an_array_inside_of_another_is_refused(names: tuple[str, ...]) -> None:
    model = TrainedModel(CARD, dict.fromkeys(names, np.zeros(1)), Path("model.npz"), lambda: mlp(5))
    with pytest.raises(BadInput, match=r"^model\.npz has an array inside of another array: restore the file\.$"):
        _ = model.parameters


def test_types_that_numpy_does_not_know_survive_a_file(tmp_path: Path) -> None:
    ModelFiles(tmp_path, None, CARD).finish(arrays_of(half(3)))
    saved = read_npz(tmp_path / "model.npz")
    assert {array.dtype for array in saved.values()} == {np.dtype(np.float32)}
    again, drawn = model_from(saved, half(3), SPEC), initial_model(half(3), SPEC, seed=1)
    assert jax.tree.all(jax.tree.map(lambda a, b: a.dtype == b.dtype and np.array_equal(a, b), again, drawn))


class TestCard:
    @pytest.mark.parametrize(
        "change",
        [
            {"format": 3}, {"scaling": 0}, {"architecture": "os"}, {"more": 1}, {"scaling": None}, {"classes": 0},
            {"scaling": {"divisor": 0, "mean": 0, "deviation": 1}}, {"class_names": ["a"]}, {"loss": "huber"},
            {"scaling": {"divisor": 1e300, "mean": 0, "deviation": 1}}, {"input_shape": [1, 1, 1 << 40]},
            {"class_names": [1, 2, 3, 4, 5]}, {"input_type": "float32"}, {"input_type": "object"}, {"outputs": 4},
            {"input_shape": []}, {"input_shape": [1] * 40},
        ],
    )  # fmt: skip
    def test_one_of_a_stranger_is_a_reason(self, change: dict, tmp_path: Path) -> None:
        CARD.write(tmp_path / "model.json")
        assert ModelCard.read(tmp_path / "model.json") == CARD
        content = json.loads((tmp_path / "model.json").read_text())
        (tmp_path / "model.json").write_text(json.dumps(content | change))
        with pytest.raises(ValueError, match=r"^it "):
            ModelCard.read(tmp_path / "model.json")

    @pytest.mark.parametrize("text", ["", "[]", "[" * 10_000, "{}"])
    def test_what_is_no_card(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "model.json").write_text(text)
        with pytest.raises(ValueError, match=r"."):
            ModelCard.read(tmp_path / "model.json")
