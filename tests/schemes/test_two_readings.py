"""Two CVs, one of which never delivers: the model under the two readings of the baselines' average.

The example of docs/reproduction.md. Both CVs hold the same amount of data, and training ends at ω = 1, the best model.
"""

import numpy as np
import pytest

from tests.schemes.rounds import experiment, observed
from vefl_sim.learning.jax_learner import JaxLearner
from vefl_sim.schemes.fedprox import FedProx

LEARNER: JaxLearner = object.__new__(JaxLearner)  # combining models needs no data
BEST = np.float32(1.0)


def after(rounds: int, **aggregation) -> float:
    """ω after some rounds from ω = 0 in which only the first of two CVs delivers, with the best model."""
    fedprox = experiment(scheme={"kind": "fedprox"}, aggregation=aggregation)
    scheme, model = FedProx(fedprox), np.float32(0.0)
    for _ in range(rounds):
        observation = observed([20, 20], [9.0, 9.0])
        weights = scheme.aggregate(observation, scheme.plan(observation), observation.cv[:1]).tolist()
        if fedprox.aggregation.form == "models":
            model = LEARNER.average([BEST], weights)
        else:
            model = LEARNER.combine(model, [model], [BEST], weights)
    return float(model)


def test_the_fair_reading_reaches_the_best_model_at_once():
    assert after(1) == 1.0


def test_models_over_coverage_stay_at_half_of_the_best_model():
    assert [after(rounds, form="models", weights_over="coverage") for rounds in (1, 2, 50)] == [0.5, 0.5, 0.5]


def test_steps_over_coverage_are_only_slower():
    steps = [after(rounds, weights_over="coverage") for rounds in (1, 2, 20)]
    assert steps == pytest.approx([0.5, 0.75, 1.0], abs=1e-5)
