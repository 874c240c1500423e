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
