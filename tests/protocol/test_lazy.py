"""When updates are computed, and how they are aggregated: lazily, in steps of several iterations, as sums of models."""

from typing import Any, ClassVar

import pandas as pd
import pytest

from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import Experiment, Run, from_tables, simulate, with_settings
from vefl_sim.core.errors import ExperimentError
from vefl_sim.learning.jax_learner import JaxLearner
from vefl_sim.learning.learner import LocalJob, Start
from vefl_sim.protocol.messages import TrainOrder
from vefl_sim.protocol.server.model import GlobalModel
from vefl_sim.simulation.scenario import build_scenario

LEARNING = EXPERIMENT | {
    "learning": {"kind": "jax"},
    "data": {"kind": "signs", "train_samples": 60, "test_samples": 50, "image_px": 16, "min_samples": 20},
    "model": {"factory": "vefl_models.cnn:cnn"},
    "sla": EXPERIMENT["sla"] | {"cycles_per_bit": [200.0, 200.0]},
}


class Eager(GlobalModel):
    """A model that computes every update when it is ordered, and looks it up when it is aggregated."""

    trained: ClassVar[list[int]] = []

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.learner: Any = _LookUp(self.learner)

    def start_of(self, order: TrainOrder) -> Start:
        start = super().start_of(order)
        job = LocalJob(order.cv, order.iterations, order.number, start.local)
        self.learner.results[job] = self.learner.real.train([start.model], [job])[0]
        Eager.trained.append(order.cv)
        return start


class _LookUp:
    """A learner that returns results computed before."""

    def __init__(self, learner) -> None:
        self.real, self.results = learner, {}

    def train(self, starts, jobs) -> list[Any]:
        return [self.results[job] for job in jobs]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


@pytest.mark.parametrize("batch_size", [None, pytest.param(7, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["pdpc", "fedbuff"])
def test_lazy_is_eager(kind: str, batch_size: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    experiment = from_tables(LEARNING)
    if kind == "fedbuff":
        several = ["run.rounds=4", "mac.start=ready", "vefl.max_local_iterations=4", "aggregation.buffer=3"]
        experiment = with_settings(experiment, f"scheme.kind={kind}", *several)
    if batch_size:
        experiment = with_settings(experiment, f"learning.batch_size={batch_size}")
    lazy = assert_equal(experiment, monkeypatch, tmp_path)
    if kind == "fedbuff":
        steps = lazy.events.query("kind == 'update_aggregated'").groupby("time_ns")["version"].nunique()
        assert steps.max() > 1  # some step aggregated updates of several versions


@pytest.mark.parametrize(
    ("kind", "codec"),
    [
        *(("scaffold", "float32"), ("feddyn", "qsgd"), ("fedasync", "top-k")),
        ("tests.schemes.anchored:Anchored", "float32"),  # learns more between an order and its training
        *(pytest.param(*pair, marks=pytest.mark.slow) for pair in (("fedadam", "top-k"), ("oort", "qsgd"))),
    ],
)
def test_schemes_and_codecs_that_remember(kind: str, codec: str, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    settings = ["run.rounds=6", f"scheme.kind={kind}", f"update.codec={codec}", "model.factory=vefl_models.mlp:mlp"]
    if with_staleness := kind == "fedasync" or ":" in kind:
        settings += ["mac.start=ready", "vefl.max_local_iterations=7"]
    base = from_tables({name: table for name, table in LEARNING.items() if name not in ("scheme", "aggregation")})
    lazy = assert_equal(with_settings(base, *settings), monkeypatch, tmp_path)
    assert (lazy.events["staleness"] > 0).any() == with_staleness


def assert_equal(experiment: Experiment, monkeypatch: pytest.MonkeyPatch, tmp_path) -> Run:
    """Compare a run with the same run in which every update is computed when it is ordered."""
    lazy = simulate(experiment, out=tmp_path / "lazy")
    monkeypatch.setattr("vefl_sim.simulation.wiring.GlobalModel", Eager)
    monkeypatch.setattr(Eager, "trained", [])
    eager = simulate(experiment, out=tmp_path / "eager")
    assert len(Eager.trained) == lazy.summary["updates_ordered"] > lazy.summary["updates_delivered"]
    assert lazy.summary["last_accuracy"] is not None
    assert lazy.content_digest() == eager.content_digest()
    return lazy


def test_iterations_per_step_change_only_the_model() -> None:
    experiment = with_settings(from_tables(LEARNING), "vefl.max_local_iterations=7", "learning.learning_rate=0.01")
    one, four = (simulate(with_settings(experiment, f"learning.iterations_per_step={n}"), out=None) for n in (1, 4))
    assert (one.vehicles["iterations"] % 4 != 0).any()  # so the last step of a CV has fewer iterations
    pd.testing.assert_frame_equal(one.vehicles, four.vehicles)
    learnt = ["accuracy", "loss"]
    pd.testing.assert_frame_equal(one.rounds.drop(columns=learnt), four.rounds.drop(columns=learnt))
    assert (one.rounds["loss"] != four.rounds["loss"]).any()
    assert (one.rounds["loss"] - four.rounds["loss"]).abs().max() < 0.02


def test_models_are_summed_only_if_the_key_is_set(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three CVs deliver, so the weights sum to 2/3: a shorter step, but with "models" a model scaled down."""
    sums, average = [], JaxLearner.average

    def spy(learner, updates, weights):
        sums.append((len(updates), sum(weights)))
        return average(learner, updates, weights)

    monkeypatch.setattr(JaxLearner, "average", spy)
    step, models = (
        simulate(from_tables(LEARNING | {"scheme": {"kind": "fedprox"}, "aggregation": keys}), out=tmp_path).rounds
        for keys in ({"weights_over": "coverage"}, {"weights_over": "coverage", "form": "models"})
    )
    assert sums == [(2, pytest.approx(2 / 3)), (1, pytest.approx(1 / 2))]  # of the second run only
    assert step["delivered"].tolist() == models["delivered"].tolist() == [2, 1]
    assert step["weight_sum"].tolist() == models["weight_sum"].tolist() == pytest.approx([2 / 3, 1 / 2])
    assert (step["loss"] != models["loss"]).all()


def test_a_user_defined_scheme_without_rounds_cannot_sum_models() -> None:
    own = {"kind": "vefl_sim.schemes.asynchronous:FedBuff"}
    with pytest.raises(ExperimentError, match=r"aggregation\.form .* no effect .*FedBuff"):
        build_scenario(from_tables(LEARNING | {"scheme": own, "aggregation": {"form": "models"}}))
