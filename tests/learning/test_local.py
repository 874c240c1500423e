import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn

from tests.learning.plain import PlainCnn, descend, gradient, train_plain
from vefl_models.cnn import cnn
from vefl_models.logistic import logistic
from vefl_sim.learning import local
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.jax_learner import initial_model
from vefl_sim.learning.learner import LocalJob, Model
from vefl_sim.learning.local import BLOCK, Descent, LocalTraining, Shuffling, StepMethod, has_convolution
from vefl_sim.learning.losses import CROSS_ENTROPY
from vefl_sim.learning.network import input_spec, scaled

DESCENT = Descent(learning_rate=0.05, proximal_mu=0.5)
SHARDS = {4: np.arange(3), 9: np.arange(3, 3 + BLOCK), 2: np.arange(100, 175), 7: np.array([199, 50, 60])}
SEED = 7


def flat(model: Model) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(model)])


def distance(one: Model, other: Model, start: Model) -> float:
    """Distance of two models, relative to the distance of `other` from the start."""
    moved = np.linalg.norm(flat(other) - flat(start))
    assert moved > 0
    return float(np.linalg.norm(flat(one) - flat(other)) / moved)


def training(module: nn.Module, data: Dataset, descent: Descent = DESCENT, **options) -> LocalTraining:
    method = StepMethod(module, options.pop("optimizer", "sgd"))
    return LocalTraining(method, (data.train_inputs, data.train_targets), SHARDS, descent, **options)


def held_by(cv: int, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    return data.train_inputs[SHARDS[cv]], data.train_targets[SHARDS[cv]]


@pytest.fixture(scope="module")
def start(small_signs: Dataset) -> Model:
    return initial_model(cnn(small_signs.classes), input_spec(small_signs.input_shape, np.uint8), SEED)


@pytest.fixture(scope="module")
def trained(small_signs: Dataset) -> LocalTraining:
    return training(cnn(small_signs.classes), small_signs)


@pytest.mark.parametrize("module", [cnn, PlainCnn])
def test_steps_equal_the_plain_version(small_signs: Dataset, start: Model, module) -> None:  # type: ignore[no-untyped-def]
    """This also checks the network: the plain version uses the layers of flax."""
    plain = train_plain(PlainCnn(small_signs.classes), start, *held_by(2, small_signs), 10, DESCENT)
    ours = training(module(small_signs.classes), small_signs).train(start, LocalJob(2, 10))
    assert distance(ours, plain, start) <= 1e-4


@pytest.mark.parametrize(
    ("cv", "iterations", "descent"),
    [(4, 50, DESCENT), (2, 50, DESCENT), (2, 13, Descent(0.005, 2.0, iterations_per_step=10))],
    ids=["3 samples", "75 samples", "merged steps"],
)
def test_fifty_steps_equal_the_plain_version_in_double_precision(
    small_signs: Dataset, start: Model, cv: int, iterations: int, descent: Descent
) -> None:
    """Merged: one step of 10·δ, and one of 3·δ. The strong proximal term is scaled in the same way."""
    with jax.enable_x64(True):
        model = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), start)
        plain = train_plain(PlainCnn(small_signs.classes), model, *held_by(cv, small_signs), iterations, descent)
        ours = training(cnn(small_signs.classes), small_signs, descent).train(model, LocalJob(cv, iterations))
        assert distance(ours, plain, model) <= 1e-9


def test_the_error_of_merging_falls_with_the_size_of_a_step(small_signs: Dataset) -> None:
    """For a smooth objective the error, relative to the distance trained, is proportional to n·δ."""
    module = logistic(small_signs.classes)
    model = initial_model(module, input_spec(small_signs.input_shape, np.uint8), SEED)

    def error(rate: float) -> float:
        trainings = [training(module, small_signs, Descent(rate, 0.5, n)) for n in (1, 10)]
        one, ten = (each.train(model, LocalJob(2, 40)) for each in trainings)
        return distance(ten, one, model)

    assert 0 < error(0.00005) < 0.15 * error(0.0005) < 0.15 * 0.03


def test_only_models_with_flax_convolutions_use_xla_convolutions() -> None:
    images, modules = jnp.zeros((1, 16, 16, 3), jnp.uint8), (PlainCnn(3), cnn(3), logistic(3))
    assert [has_convolution(module, images) for module in modules] == [True, False, False]


def test_one_compilation_serves_all_cvs(small_signs: Dataset, trained: LocalTraining, start: Model) -> None:
    """The number of iterations in a step does not matter, either."""
    trained.train(start, LocalJob(4, 1))
    compiled = local._descend_in_one_program._cache_size()
    for cv in SHARDS:
        trained.train(start, LocalJob(cv, 2))
    merging = training(cnn(small_signs.classes), small_signs, DESCENT._replace(iterations_per_step=3))
    for iterations in (2, 3, 7):
        merging.train(start, LocalJob(2, iterations))
    assert local._descend_in_one_program._cache_size() == compiled


def test_mini_batches_equal_the_plain_version(small_signs: Dataset, start: Model) -> None:
    """75 samples in batches of 40: a full batch, longer than a block, and one of 35 samples."""
    module, shuffling, job = cnn(small_signs.classes), Shuffling(40, seed=6), LocalJob(2, 3, number=5)
    images, labels = held_by(2, small_signs)
    orders = [shuffling.order(job, i, 75) for i in range(3)]
    parts = [part for order in orders for part in (order[:40], order[40:])]
    plain = descend(module, start, [(images[part], labels[part]) for part in parts], DESCENT)
    ours = training(module, small_signs, shuffling=shuffling).train(start, job)
    assert distance(ours, plain, start) <= 1e-4


def test_a_batch_larger_than_the_shard_is_all_of_it(small_signs: Dataset, trained: LocalTraining, start: Model) -> None:
    large = training(cnn(small_signs.classes), small_signs, shuffling=Shuffling(75, seed=6))
    job = LocalJob(2, 3)
    assert np.array_equal(flat(large.train(start, job)), flat(trained.train(start, job)))


def test_a_sample_order_depends_on_seed_cv_order_and_iteration() -> None:
    def order(seed: int = 1, cv: int = 2, round: int = 3, iteration: int = 4) -> list[int]:
        return Shuffling(8, seed).order(LocalJob(cv, 9, round), iteration, 50).tolist()

    assert order() == order()
    assert sorted(order()) == list(range(50))
    others = [order(seed=5), order(cv=5), order(round=5), order(iteration=5), order(cv=3, round=2)]
    assert all(other != order() for other in others)


def test_an_optimizer_of_optax_starts_afresh_with_each_order(small_signs: Dataset, start: Model) -> None:
    module, (images, labels) = logistic(small_signs.classes), held_by(2, small_signs)
    held = scaled(jnp.asarray(images)), labels
    model = initial_model(module, input_spec(small_signs.input_shape, np.uint8), SEED)
    adam, expected = optax.adam(DESCENT.learning_rate), model
    state = adam.init(model)
    for _ in range(5):
        slope = gradient(module, CROSS_ENTROPY, expected, model, *held, DESCENT.proximal_mu)
        updates, state = adam.update(slope, state, expected)
        expected = optax.apply_updates(expected, updates)
    ours = training(module, small_signs, optimizer="adam")
    for _ in range(2):
        assert distance(ours.train(model, LocalJob(2, 5)), expected, model) <= 1e-4
