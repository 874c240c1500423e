import numpy as np
import pytest

from vefl_models.cnn import cnn
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.jax_learner import initial_model
from vefl_sim.learning.losses import CROSS_ENTROPY
from vefl_sim.learning.network import input_spec, outputs_of
from vefl_sim.learning.objective import BATCH, Evaluator
from vefl_sim.learning.samples import scaled


def test_batches_give_the_mean_over_the_whole_test_set(small_signs: Dataset) -> None:
    images, labels = small_signs.test_inputs, small_signs.test_targets
    assert len(labels) % BATCH
    module = cnn(small_signs.classes)
    model = initial_model(module, input_spec(small_signs.input_shape, np.uint8), seed=1)
    outputs = outputs_of(module, model, scaled(images))
    evaluation = Evaluator(module, (images, labels), small_signs.classes).evaluate(model)
    assert evaluation.accuracy == np.mean(np.argmax(outputs, axis=1) == labels)
    assert evaluation.loss == pytest.approx(float(CROSS_ENTROPY(outputs, labels).mean()), rel=1e-5)


def test_predictions_are_counted_by_class(small_signs: Dataset) -> None:
    images, labels, classes = small_signs.test_inputs, small_signs.test_targets, small_signs.classes
    module = cnn(classes)
    model = initial_model(module, input_spec(small_signs.input_shape, np.uint8), seed=1)
    predicted = np.argmax(outputs_of(module, model, scaled(images)), axis=1)
    expected = np.zeros((classes, classes), int)
    for true, guess in zip(labels.tolist(), predicted.tolist(), strict=True):
        expected[true, guess] += 1
    assert Evaluator(module, (images, labels), classes).evaluate(model).counts.tolist() == expected.tolist()
    assert Evaluator(module, (images, labels), classes, counts=False).evaluate(model).counts is None


def test_a_network_that_predicts_no_class_is_not_counted(small_signs: Dataset) -> None:
    images, labels = small_signs.test_inputs, np.minimum(small_signs.test_targets, 1)
    module = cnn(small_signs.classes)
    model = initial_model(module, input_spec(small_signs.input_shape, np.uint8), seed=1)
    assert Evaluator(module, (images, labels), classes=2).evaluate(model).counts is None
