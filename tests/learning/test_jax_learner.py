import jax
import numpy as np
import pytest

from vefl_models.cnn import cnn
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.jax_learner import JaxLearner, Options
from vefl_sim.learning.learner import Learner, LocalJob, Model
from vefl_sim.learning.local import Shuffling
from vefl_sim.learning.losses import CROSS_ENTROPY
from vefl_sim.learning.network import outputs_of, scaled
from vefl_sim.learning.objective import Evaluator, Objective

SHARDS = {v: np.arange(25 * v, 25 * (v + 1)) for v in range(8)}
JOBS = [LocalJob(3, 4), LocalJob(0, 2), LocalJob(6, 5)]


def make_learner(dataset: Dataset, seed: int = 11, **options) -> JaxLearner:
    module, rates = cnn(dataset.classes), {"learning_rate": 0.1, "proximal_mu": 0.01}
    return JaxLearner(dataset, SHARDS, module, **rates, seed=seed, options=Options(**options))


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


def test_the_seed_determines_the_initial_model(small_signs: Dataset, start: Model) -> None:
    assert same(make_learner(small_signs, seed=11).initial_model(), start)
    assert not same(make_learner(small_signs, seed=2**32 - 1).initial_model(), start)


def test_the_number_of_threads_changes_nothing(small_signs: Dataset, start: Model) -> None:
    learners = (make_learner(small_signs, threads=threads, shuffling=Shuffling(7, seed=3)) for threads in (1, 3))
    one, three = (learner.train([start] * 3, JOBS) for learner in learners)
    assert same(one, three)
    assert not same(one[0], one[1])


def test_repeated_and_restored_runs_are_bit_identical(small_signs: Dataset, start: Model) -> None:
    def round_of(model: Model) -> tuple[Model, float]:
        learner = make_learner(small_signs)
        result = learner.combine(model, [model] * 3, learner.train([model] * 3, JOBS), [0.2, 0.3, 0.5])
        return result, learner.evaluate(result).loss

    first, first_loss = round_of(start)
    restored, restored_loss = round_of(jax.tree.map(np.asarray, start))
    assert same(first, restored)
    assert first_loss == restored_loss


def test_combine_adds_weighted_differences_and_average_weighted_models(learner: JaxLearner, start: Model) -> None:
    one, four, nine = (filled(start, value) for value in (1.0, 4.0, 9.0))
    assert same(learner.combine(one, [one, one], [four, nine], [0.5, 0.25]), filled(start, 1 + 0.5 * 3 + 0.25 * 8))
    assert same(learner.combine(one, [one, four], [four, nine], [0.5, 0.25]), filled(start, 1 + 0.5 * 3 + 0.25 * 5))
    assert same(learner.average([one, four], [0.25, 0.5]), filled(start, 2.25))
    assert same(learner.combine(start, [], [], []), start)


def test_batches_give_the_mean_over_the_whole_test_set_and_count_predictions(
    small_signs: Dataset, start: Model
) -> None:
    images, labels, classes = small_signs.test_inputs, small_signs.test_targets, small_signs.classes
    objective = Objective(cnn(classes))
    assert len(labels) % objective.block
    evaluation = Evaluator(objective, (images, labels), classes).evaluate(start)
    outputs = np.asarray(outputs_of(cnn(classes), start, scaled(images)))
    predicted = np.argmax(outputs, axis=1)
    assert evaluation.accuracy == np.mean(predicted == labels)
    assert evaluation.loss == pytest.approx(float(CROSS_ENTROPY(outputs, labels).mean()), rel=1e-5)
    expected = np.zeros((classes, classes), int)
    np.add.at(expected, (labels, predicted), 1)
    assert evaluation.counts.tolist() == expected.tolist()
    assert Evaluator(objective, (images, labels), classes, counts=False).evaluate(start).counts is None
    of_two = Evaluator(objective, (images, np.minimum(labels, 1)), classes=2)
    assert of_two.evaluate(start).counts is None  # the network predicts other classes


def test_without_learning_there_are_parameters_but_no_model() -> None:
    learner = Learner(parameters=21_840)
    assert learner.parameters == 21_840
    assert learner.initial_model() is None
    assert learner.train([None, None], [LocalJob(1, 5), LocalJob(2, 5)]) == [None, None]
    assert learner.evaluate(None) is None
    own = {name for name in vars(Learner) if not name.startswith("_")} - {"statistics"}
    assert own <= vars(JaxLearner).keys()  # it overrides all methods
