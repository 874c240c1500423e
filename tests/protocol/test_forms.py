"""`aggregation.form`: the server steps from its last model, or sums the local models."""

import pytest

from tests.protocol.test_lazy import LEARNING
from vefl_sim import from_tables, simulate
from vefl_sim.core.errors import ExperimentError
from vefl_sim.learning.jax_learner import JaxLearner
from vefl_sim.simulation.scenario import build_scenario

COVERAGE = {"weights_over": "coverage"}


def run_with(aggregation, folder):
    tables = LEARNING | {"scheme": {"kind": "fedprox"}, "aggregation": aggregation}
    return simulate(from_tables(tables), out=folder).rounds


def test_models_are_summed_only_if_the_key_is_set(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three CVs deliver, so the weights sum to 2/3: a shorter step, but with "models" a model scaled down."""
    sums = []
    average = JaxLearner.average

    def spy(learner, updates, weights):
        sums.append((len(updates), sum(weights)))
        return average(learner, updates, weights)

    monkeypatch.setattr(JaxLearner, "average", spy)
    step = run_with(COVERAGE, tmp_path)
    assert sums == []
    models = run_with(COVERAGE | {"form": "models"}, tmp_path)
    assert sums == [(2, pytest.approx(2 / 3)), (1, pytest.approx(1 / 2))]
    assert step["delivered"].tolist() == models["delivered"].tolist() == [2, 1]
    assert step["weight_sum"].tolist() == models["weight_sum"].tolist() == pytest.approx([2 / 3, 1 / 2])
    assert (step["loss"] != models["loss"]).all()


def test_a_user_defined_scheme_without_rounds_cannot_sum_models() -> None:
    own = {"kind": "vefl_sim.schemes.asynchronous:FedBuff"}
    with pytest.raises(ExperimentError, match=r"aggregation\.form .* no effect .*FedBuff.*: remove it \("):
        build_scenario(from_tables(LEARNING | {"scheme": own, "aggregation": {"form": "models"}}))
