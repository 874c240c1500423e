"""Two CVs, one of which never delivers: the model under the two readings of the average.

The examples of docs/reproduction.md. Both CVs hold the same amount of data, and training ends at ω = 1, the best model.
"""

import numpy as np
import pytest

from tests.schemes.rounds import experiment, observed
from vefl_sim.learning.jax_learner import JaxLearner
from vefl_sim.schemes.fedprox import FedProx
from vefl_sim.schemes.pdpc import Fdpc

LEARNER: JaxLearner = object.__new__(JaxLearner)  # combining models needs no data
BEST = np.float32(1.0)


def after(rounds: int, kind: type[FedProx] | type[Fdpc] = FedProx, **aggregation) -> float:
    """ω after some rounds from ω = 0 in which only the first of two CVs delivers, with the best model.

    The second CV leaves soon: it has a tenth of the sum of the sojourn bounds.
    """
    run = experiment(scheme={"kind": kind.__name__.lower()}, aggregation=aggregation)
    scheme, model = kind(run), np.float32(0.0)
    for _ in range(rounds):
        observation = observed([20, 20], [9.0, 1.0])
        weights = scheme.aggregate(observation, scheme.plan(observation), observation.cv[:1]).tolist()
        if run.aggregation.form == "models":
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


@pytest.mark.parametrize(("sojourn_weight", "model"), [(0.0, 0.5), (0.8, 0.82), (1.0, 0.9)])
def test_the_more_weight_on_the_sojourn_bound_the_less_a_cv_is_missed_that_leaves_soon(
    sojourn_weight: float, model: float
) -> None:
    read = {"form": "models", "weights_over": "coverage", "sojourn_weight": sojourn_weight}
    assert [after(rounds, Fdpc, **read) for rounds in (1, 50)] == pytest.approx([model, model])
    assert after(50, Fdpc, weights_over="coverage", sojourn_weight=sojourn_weight) == pytest.approx(1.0)
