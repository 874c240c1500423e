"""The learner on pictures, and on data of any type: evaluation, losses, BatchNorm and dropout; and whole runs."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.learning.networks import Normed, plane
from tests.learning.plain import train_plain
from tests.resumable import EXPERIMENT
from vefl_models.cnn import cnn
from vefl_models.mlp import mlp
from vefl_sim import Experiment, from_tables, simulate
from vefl_sim.analysis.evaluation import evaluate
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.jax_learner import JaxLearner, Options, initial_model
from vefl_sim.learning.learner import Learner, LocalJob, Model
from vefl_sim.learning.local import Descent, Shuffling
from vefl_sim.learning.losses import CROSS_ENTROPY, MSE
from vefl_sim.learning.network import input_spec, outputs_of, scaled
from vefl_sim.learning.objective import Evaluator, Objective
from vefl_sim.simulation.scenario import build_scenario

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


def test_a_learner_overrides_all_methods_of_one_that_learns_nothing() -> None:
    own = {name for name in vars(Learner) if not name.startswith("_")} - {"statistics"}
    assert own <= vars(JaxLearner).keys()


# Data of any type

PLANE = plane(None, Streams(3))  # type: ignore[arg-type]
HELD = {0: np.arange(40), 1: np.arange(40, 133), 2: np.arange(200, 207)}


def of_plane(module, dataset: Dataset = PLANE, mu: float = 0.0, **options) -> JaxLearner:  # type: ignore[no-untyped-def]
    return JaxLearner(
        dataset, HELD, module, learning_rate=0.05, proximal_mu=mu, seed=1, options=Options(loss=MSE, **options)
    )


def close(one: Model, other: Model, tolerance: float = 1e-5) -> bool:
    return jax.tree.all(jax.tree.map(lambda a, b: np.allclose(a, b, atol=tolerance), one, other))


def test_built_in_losses_are_those_of_optax() -> None:
    rng = np.random.default_rng(2)
    outputs, labels, numbers = rng.normal(size=(9, 4)), rng.integers(4, size=9), rng.normal(size=(9, 2, 2))
    expected = optax.softmax_cross_entropy_with_integer_labels(jnp.float32(outputs), labels)
    assert np.allclose(CROSS_ENTROPY(jnp.float32(outputs), labels), expected, atol=1e-6)
    squares = optax.squared_error(jnp.float32(outputs), jnp.float32(numbers).reshape(9, 4)).mean(axis=1)
    assert np.allclose(MSE(jnp.float32(outputs), jnp.float32(numbers)), squares, atol=1e-6)


def test_only_pixels_are_scaled() -> None:
    assert scaled(jnp.array([0, 255], jnp.uint8)).tolist() == [-2.0, 2.0]
    assert scaled(jnp.array([0, 255], jnp.int16)).dtype == jnp.int16
    assert scaled(jnp.array([0, 255], jnp.float16)).tolist() == [0.0, 255.0]


def test_a_regression_is_trained_as_the_plain_version_does() -> None:
    module = mlp(2)
    start = initial_model(module, input_spec((3,), np.float32), seed=1)
    [fast] = of_plane(module, mu=0.1).train([start], [LocalJob(1, 12)])
    inputs, targets = PLANE.train_inputs[HELD[1]], PLANE.train_targets[HELD[1]]
    assert close(fast, train_plain(module, start, inputs, targets, 12, Descent(0.05, 0.1), MSE))
    evaluation = of_plane(module).evaluate(fast)
    outputs = module.apply(fast, PLANE.test_inputs)
    assert evaluation.accuracy is None
    assert evaluation.counts is None
    assert evaluation.loss == pytest.approx(float(((outputs - PLANE.test_targets) ** 2).mean()), rel=1e-5)


@pytest.mark.parametrize("cv", [0, 2])
def test_batch_statistics_are_those_of_flax(cv: int) -> None:
    """Mini-batches of ten: flax itself, batch by batch; a batch of fewer samples repeats them."""
    module, shuffling, held = Normed(2), Shuffling(10, seed=4), HELD[cv]
    ours = of_plane(module, shuffling=shuffling)
    start, job = ours.initial_model(), LocalJob(cv, 3, number=5)
    [trained] = ours.train([start], [job])
    model = start
    for iteration in range(3):
        order = held if len(held) < 10 else held[shuffling.order(job, iteration, len(held))]
        for first in range(0, len(order), 10):
            model = plain_step(module, model, order[first : first + 10])
    assert close(trained, model)
    assert not close(trained["batch_stats"], start["batch_stats"])


def plain_step(module: Normed, model: Model, batch: np.ndarray) -> Model:
    repeated = np.resize(batch, 10)

    def loss(params):  # type: ignore[no-untyped-def]
        both = {**model, "params": params}
        outputs, changed = module.apply(both, PLANE.train_inputs[repeated], train=True, mutable=["batch_stats"])
        return MSE(outputs, PLANE.train_targets[repeated])[: len(batch)].mean(), changed

    slope, changed = jax.grad(loss, has_aux=True)(model["params"])
    return {"params": jax.tree.map(lambda w, g: w - 0.05 * g, model["params"], slope), **changed}


def test_dropout_depends_on_the_order_and_not_on_calls() -> None:
    ours = of_plane(Normed(2, rate=0.5))
    start = ours.initial_model()
    once = ours.train([start] * 2, [LocalJob(0, 3, number=1), LocalJob(0, 3, number=2)])
    again = ours.train([start], [LocalJob(0, 3, number=2)])
    assert close(once[1], again[0], 0.0)
    assert not close(once[0], once[1])
    other_seed = of_plane(Normed(2, rate=0.5), dropout_seed=9).train([start], [LocalJob(0, 3, number=2)])
    assert not close(other_seed[0], again[0])
    assert ours.evaluate(once[0]) == ours.evaluate(once[0])  # no dropout in evaluation


@pytest.mark.parametrize("weights", [(0.2, 0.3), (3.0, 2.0)])
def test_statistics_are_averaged_and_stay_positive(weights: tuple[float, float]) -> None:
    ours = of_plane(Normed(2))
    model = ours.initial_model()
    updates = [jax.tree.map(lambda leaf, k=k: leaf * 0 + k, model) for k in (0.5, 0.25)]
    combined = ours.combine(model, [updates[1], model], updates, weights)
    share = np.array(weights) / max(1.0, sum(weights))
    variance = combined["batch_stats"]["BatchNorm_0"]["var"]
    assert np.allclose(variance, (1 - share.sum()) * 1.0 + share @ [0.5, 0.25])
    bias = combined["params"]["Dense_0"]["bias"]
    assert np.allclose(bias, weights[0] * (0.5 - 0.25) + weights[1] * 0.25)


def experiment(**tables: dict[str, object]) -> Experiment:
    own: dict[str, dict[str, object]] = EXPERIMENT | {
        "data": {"kind": "tests.learning.networks:plane", "partition": "iid", "min_samples": 5},
        "learning": {"loss": "mse"},
        "model": {"factory": "tests.learning.networks:normed"},
    }
    return from_tables({name: own.get(name, {}) | tables.get(name, {}) for name in {*own, *tables}})


def test_a_regression_learns_and_its_model_is_evaluated_alike(tmp_path: Path) -> None:
    regression = simulate(experiment(), out=tmp_path)
    rounds = regression.rounds
    assert rounds["accuracy"].isna().all()
    assert rounds["loss"].iloc[-1] < 0.5 * rounds["loss"].iloc[0]
    assert regression.summary["last_accuracy"] is None
    assert regression.summary["last_loss"] == rounds["loss"].iloc[-1]
    model = regression.model()
    assert "batch_stats.BatchNorm_0.var" in model.arrays
    assert (model.card.outputs, model.card.classes, model.card.scaling, model.card.loss) == (2, None, None, "mse")
    [score] = evaluate(regression, model)
    assert score.evaluation.loss == rounds["loss"].iloc[-1]
    assert [line.split()[0] for line in score.lines()] == ["data", "loss", "rmse"]
    assert model.apply(PLANE.test_inputs).shape == (100, 2)
    outputs = [model.apply(np.array([[0, 1, 2]], kind)).tolist() for kind in (np.uint8, np.int64, np.float32)]
    assert outputs[0] == outputs[1] == outputs[2]


def test_tokens_and_a_loss_of_the_user(tmp_path: Path) -> None:
    tokens = {"kind": "tests.learning.networks:sentences"}
    factory = {"factory": "tests.learning.networks:Words"}
    run = simulate(experiment(data=tokens, model=factory, learning={"loss": "cross-entropy"}), out=tmp_path)
    assert run.rounds["accuracy"].notna().all()
    assert run.model().apply(np.zeros((3, 9), np.int16)).shape == (3, 2)
    own = "tests.learning.networks:absolute"
    run = simulate(experiment(model={"factory": "vefl_models.mlp:mlp"}, learning={"loss": own}), out=tmp_path)
    [score] = evaluate(run, run.model())
    assert score.evaluation.loss == run.rounds["loss"].iloc[-1]
    assert own in json.loads((run.path / "versions.json").read_text())["parts"]


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ({"learning": {"loss": "cross-entropy"}}, "set learning.loss"),
        ({"data": {"partition": "dirichlet"}}, "set data.partition"),
        ({"data": {"partition": "own"}}, "CV that recorded them"),
        ({"model": {"factory": "tests.learning.networks:WithoutTrain"}}, "argument `train`"),
        ({"model": {"factory": "tests.learning.networks:WithDeterministic"}}, "argument 'deterministic'"),
        ({"model": {"factory": "tests.learning.networks:AlwaysDrops"}}, "argument `train`"),
        ({"model": {"factory": "vefl_models.cnn:cnn"}}, "vefl_models.mlp:mlp"),
        ({"learning": {"loss": "tests.learning.networks:summed"}}, "one number per sample"),
        ({"learning": {"loss": "tests.learning.networks:plane"}}, "cannot be computed"),
    ],
)
def test_what_does_not_fit_is_one_sentence(tables: dict[str, dict[str, object]], sentence: str) -> None:
    with pytest.raises(ExperimentError, match=sentence) as error:
        build_scenario(experiment(**tables))
    assert "\n" not in str(error.value)
