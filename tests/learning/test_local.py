import jax
import numpy as np
import pytest

from vefl_models.cnn import cnn
from vefl_sim.learning import local
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.jax_learner import initial_model
from vefl_sim.learning.learner import LocalJob, Model
from vefl_sim.learning.local import BLOCK, Descent, LocalTraining, Method
from vefl_sim.learning.plain import train_plain

DESCENT = Descent(learning_rate=0.05, proximal_mu=0.5)
SHARDS = {4: np.arange(3), 9: np.arange(3, 3 + BLOCK), 2: np.arange(100, 145), 7: np.array([199, 50, 60])}


def flat(model: Model) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(model)])


@pytest.fixture(scope="module")
def start(small_signs: Dataset) -> Model:
    return initial_model(cnn(small_signs.classes), small_signs.image_shape, seed=3)


@pytest.fixture(scope="module")
def descent(small_signs: Dataset) -> LocalTraining:
    images, labels = small_signs.train_images, small_signs.train_labels
    return LocalTraining(Method(cnn(small_signs.classes)), (images, labels), SHARDS, DESCENT)


@pytest.mark.parametrize(("cv", "iterations"), [(4, 1), (9, 10), (2, 50), (7, 25)])
def test_blocks_equal_the_plain_twin(
    small_signs: Dataset, descent: LocalTraining, start: Model, cv: int, iterations: int
) -> None:
    images, labels = small_signs.train_images[SHARDS[cv]], small_signs.train_labels[SHARDS[cv]]
    plain = train_plain(cnn(small_signs.classes), start, images, labels, iterations, DESCENT)
    blocks = descent.train(start, LocalJob(cv, iterations))
    moved = np.linalg.norm(flat(plain) - flat(start))
    assert moved > 0
    assert np.linalg.norm(flat(blocks) - flat(plain)) <= 1e-4 * moved


def test_no_iterations_change_nothing(descent: LocalTraining, start: Model) -> None:
    assert np.array_equal(flat(descent.train(start, LocalJob(2, 0))), flat(start))


def test_one_compilation_serves_all_cvs(descent: LocalTraining, start: Model) -> None:
    descent.train(start, LocalJob(4, 1))
    compiled = local._add_block._cache_size()
    for cv in SHARDS:
        descent.train(start, LocalJob(cv, 2))
    assert local._add_block._cache_size() == compiled


def test_the_proximal_term_keeps_the_model_close(small_signs: Dataset, start: Model) -> None:
    def distance(mu: float) -> float:
        images, labels = small_signs.train_images, small_signs.train_labels
        free = LocalTraining(Method(cnn(small_signs.classes)), (images, labels), SHARDS, Descent(0.05, mu))
        return float(np.linalg.norm(flat(free.train(start, LocalJob(2, 30))) - flat(start)))

    assert distance(10.0) < 0.5 * distance(0.0)
