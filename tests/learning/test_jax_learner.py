import jax
import numpy as np
import pytest

from vefl_models.cnn import cnn
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.jax_learner import JaxLearner, Options
from vefl_sim.learning.learner import Learner, LocalJob, Model
from vefl_sim.learning.samples import Shuffling

SHARDS = {v: np.arange(25 * v, 25 * (v + 1)) for v in range(8)}
JOBS = [LocalJob(3, 4), LocalJob(0, 2), LocalJob(6, 5)]


def make_learner(dataset: Dataset, seed: int = 11, **options) -> JaxLearner:
    return JaxLearner(
        dataset,
        SHARDS,
        cnn(dataset.classes),
        learning_rate=0.1,
        proximal_mu=0.01,
        seed=seed,
        options=Options(**options),
    )


@pytest.fixture(scope="module")
def learner(small_signs: Dataset) -> JaxLearner:
    return make_learner(small_signs)


@pytest.fixture(scope="module")
def start(learner: JaxLearner) -> Model:
    return learner.initial_model()


def same(one: Model, other: Model) -> bool:
    return bool(jax.tree.all(jax.tree.map(np.array_equal, one, other)))


def filled(model: Model, value: float) -> Model:
    return jax.tree.map(lambda leaf: np.full(leaf.shape, value, np.float32), model)


def test_the_learner_reports_the_number_of_parameters_of_its_models(learner: Learner, start: Model) -> None:
    assert learner.parameters == sum(np.size(leaf) for leaf in jax.tree.leaves(start))


def test_the_seed_determines_the_initial_model(small_signs: Dataset, start: Model) -> None:
    assert same(make_learner(small_signs, seed=11).initial_model(), start)
    assert not same(make_learner(small_signs, seed=2**32 - 1).initial_model(), start)


def test_results_come_in_the_order_of_the_jobs(learner: JaxLearner, start: Model) -> None:
    together = learner.train([start] * 3, JOBS)
    alone = [learner.train([start], [job])[0] for job in JOBS]
    assert same(together, alone)
    assert not same(together[0], together[1])


@pytest.mark.parametrize("options", [{}, {"shuffling": Shuffling(7, seed=3)}, {"optimizer": "adam"}])
def test_the_number_of_threads_changes_nothing(small_signs: Dataset, start: Model, options: dict) -> None:
    one, three = (make_learner(small_signs, threads=threads, **options).train([start] * 3, JOBS) for threads in (1, 3))
    assert same(one, three)


def test_repeated_and_restored_runs_are_bit_identical(small_signs: Dataset, start: Model) -> None:
    def round_of(model: Model) -> tuple[Model, float]:
        learner = make_learner(small_signs)
        result = learner.combine(model, [model] * 3, learner.train([model] * 3, JOBS), [0.2, 0.3, 0.5])
        return result, learner.evaluate(result).loss

    first, first_loss = round_of(start)
    restored, restored_loss = round_of(jax.tree.map(np.asarray, start))
    assert same(first, restored)
    assert first_loss == restored_loss


def test_combine_adds_weighted_differences(learner: JaxLearner, start: Model) -> None:
    one, four, nine = (filled(start, value) for value in (1.0, 4.0, 9.0))
    assert same(learner.combine(one, [one, one], [four, nine], [0.5, 0.25]), filled(start, 1 + 0.5 * 3 + 0.25 * 8))
    assert same(learner.combine(one, [one, four], [four, nine], [0.5, 0.25]), filled(start, 1 + 0.5 * 3 + 0.25 * 5))


def test_combine_of_nothing_is_the_model(learner: JaxLearner, start: Model) -> None:
    assert same(learner.combine(start, [], [], []), start)


def test_average_adds_weighted_models(learner: JaxLearner, start: Model) -> None:
    one, other = learner.train([start] * 2, JOBS[:2])
    expected = jax.tree.map(lambda a, b: 0.25 * a + 0.5 * b, one, other)
    average = learner.average([one, other], [0.25, 0.5])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7), average, expected)


def test_both_forms_agree_where_the_weights_sum_to_one(learner: JaxLearner, start: Model) -> None:
    updates = learner.train([start] * 2, JOBS[:2])
    step = learner.combine(start, [start] * 2, updates, [0.3, 0.7])
    models = learner.average(updates, [0.3, 0.7])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), step, models)


def test_training_lowers_the_loss_and_raises_the_accuracy(learner: JaxLearner, start: Model) -> None:
    model, before = start, learner.evaluate(start)
    for _ in range(4):
        updates = learner.train([model] * len(SHARDS), [LocalJob(v, 10) for v in SHARDS])
        model = learner.combine(model, [model] * len(updates), updates, [1 / len(SHARDS)] * len(SHARDS))
    after = learner.evaluate(model)
    assert after.loss < before.loss
    assert after.accuracy > 2 * before.accuracy
