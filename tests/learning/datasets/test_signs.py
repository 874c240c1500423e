"""Signs: the drawn data set, and the distances by which its shapes are drawn."""

import numpy as np
import pytest
from flax import linen as nn

from vefl_models.cnn import cnn
from vefl_models.logistic import logistic
from vefl_sim import from_tables
from vefl_sim.learning.datasets import signs as drawing
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.signs import (
    FACES,
    Points,
    Shape,
    disc,
    mirrored,
    moved,
    polygon,
    regular_polygon,
    signs,
    stroke,
    turned,
    union,
)
from vefl_sim.learning.jax_learner import JaxLearner, Options
from vefl_sim.learning.learner import LocalJob
from vefl_sim.learning.local import Shuffling
from vefl_sim.simulation.scenario import build_scenario


def draw(train: int = 100, test: int = 40, image_px: int = 20, seed: int = 1) -> Dataset:
    return signs(train, test, image_px, np.random.default_rng(seed))


def test_shapes_and_types_also_of_images_that_nobody_sees() -> None:
    dataset, unseen = draw(image_px=17), signs(100, 40, 17, np.random.default_rng(1), unseen=True)
    for split, samples in (("train", 100), ("test", 40)):
        seen_images, images = (getattr(drawn, f"{split}_inputs") for drawn in (dataset, unseen))
        assert images.shape == seen_images.shape == (samples, 17, 17, 3)
        assert images.dtype == seen_images.dtype == np.uint8
        assert not images.any()
        assert np.array_equal(getattr(unseen, f"{split}_targets"), getattr(dataset, f"{split}_targets"))


def test_a_run_without_learning_draws_no_images(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = from_tables(
        {"run": {"name": "none", "rounds": 1}, "learning": {"kind": "none"}, "data": {"validation_samples": 100}}
    )
    with monkeypatch.context() as patch:
        patch.setattr(drawing, "photograph", None)
        patch.setattr(drawing, "signs", signs)  # not what another test has drawn
        without = build_scenario(experiment).shards
    monkeypatch.setattr(drawing, "signs", lambda *sizes_and_rng, unseen: signs(*sizes_and_rng))
    with_images = build_scenario(experiment).shards
    assert {cv: own.tolist() for cv, own in with_images.items()} == {cv: own.tolist() for cv, own in without.items()}


def test_classes_are_equally_frequent_and_mixed() -> None:
    dataset = draw(train=170)
    counts = np.bincount(dataset.train_targets, minlength=dataset.classes)
    assert dataset.classes == len(FACES) >= 12
    assert counts.max() - counts.min() <= 1
    assert len(set(dataset.train_targets[:16])) > 4


def test_the_generator_determines_all_images_and_no_two_are_equal() -> None:
    one, same, other = draw(seed=1), draw(train=30, seed=1), draw(seed=2)
    assert np.array_equal(one.test_inputs, same.test_inputs)  # does not depend on the size of the training set
    assert np.array_equal(one.train_inputs, draw(seed=1).train_inputs)
    everything = np.concatenate([one.train_inputs, one.test_inputs, other.train_inputs])
    assert len({image.tobytes() for image in everything}) == 240


def accuracy_after_training(module: nn.Module, learning_rate: float, dataset: Dataset) -> float:
    """Test accuracy after four epochs with Adam on mini-batches of 32."""
    options = Options(optimizer="adam", shuffling=Shuffling(32, seed=1))
    shards = {0: np.arange(len(dataset.train_targets))}
    learner = JaxLearner(dataset, shards, module, learning_rate=learning_rate, proximal_mu=0.0, seed=0, options=options)
    [model] = learner.train([learner.initial_model()], [LocalJob(0, 4)])
    return learner.evaluate(model).accuracy or 0.0


@pytest.mark.slow
def test_a_linear_model_stays_well_below_the_cnn() -> None:
    dataset = draw(train=1920, test=640, image_px=20)
    linear = accuracy_after_training(logistic(dataset.classes), 1e-3, dataset)
    assert linear < 0.7
    assert accuracy_after_training(cnn(dataset.classes), 3e-3, dataset) > linear + 0.15


# Shapes

BOX = polygon((-1, -2), (1, -2), (1, 2), (-1, 2))
RIGHT_OF_MIDDLE = moved(disc(0.1), 0.5, 0)


@pytest.mark.parametrize(
    ("shape", "point", "expected"),
    [
        (disc(2), (3, 4), 3),
        (BOX, (3, 0), 2),
        (BOX, (0, -2.5), 0.5),
        (regular_polygon(4, 2**0.5, 45), (0, 3), 2),
        (stroke(2, (0, 0), (4, 0)), (2, 3), 2),
        (stroke(2, (0, 0), (4, 0)), (7, 4), 4),
        (stroke(2, (0, 0), (4, 0), (4, 4)), (4, 2), -1),
        (union(disc(1), moved(disc(1), 5, 0)), (5, 0), -1),
        (moved(disc(1), 1, 2, size=3), (1, 7), 2),
        (mirrored(RIGHT_OF_MIDDLE), (-0.5, 0), -0.1),
        (turned(RIGHT_OF_MIDDLE, 3), (0, -0.5), -0.1),
    ],
)
def test_distances_are_exact(shape: Shape, point: tuple[float, float], expected: float) -> None:
    assert shape(Points(*np.array(point, float))) == pytest.approx(expected)


def test_float32_points_give_float32_distances() -> None:
    points = Points(np.zeros(2, np.float32), np.ones(2, np.float32))
    for shape in (turned(mirrored(moved(union(disc(1), BOX), 0.1, 0.2, 0.3)), 2), stroke(0.1, (0, 0), (1, 1))):
        assert shape(points).dtype == np.float32
