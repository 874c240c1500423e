import numpy as np
import pytest

from vefl_models.cnn import cnn
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.jax_learner import initial_model
from vefl_sim.learning.objective import BATCH, Evaluator, cross_entropy, logits
from vefl_sim.learning.samples import scaled


def test_batches_give_the_mean_over_the_whole_test_set(small_signs: Dataset) -> None:
    images, labels = small_signs.test_images, small_signs.test_labels
    assert len(labels) % BATCH
    module = cnn(small_signs.classes)
    model = initial_model(module, small_signs.image_shape, seed=1)
    outputs = logits(module, model, scaled(images))
    evaluation = Evaluator(module, images, labels).evaluate(model)
    assert evaluation.accuracy == np.mean(np.argmax(outputs, axis=1) == labels)
    assert evaluation.loss == pytest.approx(float(cross_entropy(outputs, labels).mean()), rel=1e-5)


def test_predictions_are_counted_by_class(small_signs: Dataset) -> None:
    images, labels, classes = small_signs.test_images, small_signs.test_labels, small_signs.classes
    module = cnn(classes)
    model = initial_model(module, small_signs.image_shape, seed=1)
    predicted = np.argmax(logits(module, model, scaled(images)), axis=1)
    expected = np.zeros((classes, classes), int)
    for true, guess in zip(labels.tolist(), predicted.tolist(), strict=True):
        expected[true, guess] += 1
    assert Evaluator(module, images, labels, classes).evaluate(model).counts.tolist() == expected.tolist()
    assert Evaluator(module, images, labels).evaluate(model).counts is None


def test_a_network_that_predicts_no_class_is_not_counted(small_signs: Dataset) -> None:
    images, labels = small_signs.test_images, np.minimum(small_signs.test_labels, 1)
    module = cnn(small_signs.classes)
    model = initial_model(module, small_signs.image_shape, seed=1)
    assert Evaluator(module, images, labels, classes=2).evaluate(model).counts is None
