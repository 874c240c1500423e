from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from numpy.typing import NDArray

from vefl_models.cnn import cnn
from vefl_sim import from_tables, simulate
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.signs import drawing
from vefl_sim.learning.datasets.signs.drawing import signs
from vefl_sim.learning.datasets.signs.faces import FACES
from vefl_sim.learning.datasets.signs.photo import photograph
from vefl_sim.learning.samples import scaled


def draw(train: int = 100, test: int = 40, image_px: int = 20, seed: int = 1) -> Dataset:
    return signs(train, test, image_px, np.random.default_rng(seed))


@pytest.mark.parametrize("image_px", [16, 28, 41])
def test_shapes_and_types(image_px: int) -> None:
    dataset = draw(image_px=image_px)
    assert dataset.train_inputs.shape == (100, image_px, image_px, 3)
    assert dataset.test_inputs.shape == (40, image_px, image_px, 3)
    assert dataset.train_inputs.dtype == dataset.test_inputs.dtype == np.uint8
    assert dataset.train_targets.dtype == dataset.test_targets.dtype == np.int32


def test_images_that_nobody_sees_are_black_and_have_the_same_labels() -> None:
    dataset, unseen = draw(), signs(100, 40, 20, np.random.default_rng(1), unseen=True)
    for split in ("train", "test"):
        seen_images, images = (getattr(drawn, f"{split}_inputs") for drawn in (dataset, unseen))
        assert (images.shape, images.dtype) == (seen_images.shape, seen_images.dtype)
        assert seen_images.any()
        assert not images.any()
        assert np.array_equal(getattr(unseen, f"{split}_targets"), getattr(dataset, f"{split}_targets"))


def test_a_run_without_learning_draws_no_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = from_tables(
        {"run": {"name": "none", "rounds": 2}, "learning": {"kind": "none"}, "data": {"validation_samples": 100}}
    )
    with monkeypatch.context() as patch:
        patch.setattr(drawing, "photograph", None)
        patch.setattr(drawing, "signs", signs)  # not what another test has drawn
        without = simulate(experiment, out=tmp_path / "without").summary["content_digest"]
    monkeypatch.setattr(drawing, "signs", lambda *sizes_and_rng, unseen: signs(*sizes_and_rng))
    assert simulate(experiment, out=tmp_path / "with").summary["content_digest"] == without


def test_classes_are_equally_frequent_and_mixed() -> None:
    dataset = draw(train=170)
    counts = np.bincount(dataset.train_targets, minlength=dataset.classes)
    assert dataset.classes == len(FACES) >= 12
    assert counts.max() - counts.min() <= 1
    assert len(set(dataset.train_targets[:16])) > 4


def test_the_generator_determines_all_images() -> None:
    one, same, other = draw(seed=1), draw(seed=1), draw(seed=2)
    assert np.array_equal(one.train_inputs, same.train_inputs)
    assert np.array_equal(one.test_inputs, same.test_inputs)
    assert not np.array_equal(one.train_inputs, other.train_inputs)


def test_test_set_does_not_depend_on_the_size_of_the_training_set() -> None:
    assert np.array_equal(draw(train=30).test_inputs, draw(train=90).test_inputs)


def test_no_two_images_are_equal() -> None:
    dataset = draw(train=200, test=200)
    everything = np.concatenate([dataset.train_inputs, dataset.test_inputs])
    assert len({image.tobytes() for image in everything}) == 400


def test_faces_differ_from_each_other_under_the_same_conditions() -> None:
    shots = [photograph(face, 8, 28, np.random.default_rng(3)).astype(float) for face in FACES]
    for i, one in enumerate(shots):
        for other in shots[:i]:
            assert np.abs(one - other).mean() > 1


def test_several_classes_share_plate_and_colours() -> None:
    looks = [(id(face.plate), face.rim_colour, face.field_colour, face.ink) for face in FACES]
    assert sum(looks.count(look) > 1 for look in looks) >= 10


class Linear(nn.Module):
    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        return nn.Dense(len(FACES))(images.reshape(len(images), -1))


def accuracy_after_training(module: nn.Module, learning_rate: float, dataset: Dataset, epochs: int) -> float:
    """Test accuracy after training with Adam on mini-batches of 32."""
    model = jax.jit(module.init)(jax.random.key(0), jnp.zeros((1, *dataset.input_shape)))
    optimizer = optax.adam(learning_rate)

    def loss(w: optax.Params, x: jax.Array, y: jax.Array) -> jax.Array:
        outputs = module.apply(w, scaled(x))
        return optax.softmax_cross_entropy_with_integer_labels(outputs, y).mean()

    @jax.jit
    def step(w: optax.Params, state: optax.OptState, x: jax.Array, y: jax.Array) -> tuple[optax.Params, optax.OptState]:
        updates, state = optimizer.update(jax.grad(loss)(w, x, y), state)
        return optax.apply_updates(w, updates), state

    state, rng = optimizer.init(model), np.random.default_rng(0)
    for _ in range(epochs):
        batches: NDArray[np.int64] = rng.permutation(len(dataset.train_targets)).reshape(-1, 32)
        for batch in batches:
            model, state = step(model, state, dataset.train_inputs[batch], dataset.train_targets[batch])
    outputs = module.apply(model, scaled(jnp.asarray(dataset.test_inputs)))
    return float(np.mean(np.argmax(outputs, axis=1) == dataset.test_targets))


@pytest.mark.slow
def test_a_linear_model_stays_well_below_the_cnn() -> None:
    dataset = draw(train=1920, test=640, image_px=20)
    linear = accuracy_after_training(Linear(), 1e-3, dataset, epochs=4)
    convolutional = accuracy_after_training(cnn(dataset.classes), 3e-3, dataset, epochs=4)
    assert linear < 0.7
    assert convolutional > linear + 0.15
