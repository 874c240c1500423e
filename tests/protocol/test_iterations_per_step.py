"""`learning.iterations_per_step` changes the model that is learnt, but no plan, no time and no cost."""

import pandas as pd

from tests.protocol.test_lazy import LEARNING
from vefl_sim import from_tables, simulate, with_settings


def test_only_the_model_changes(tmp_path) -> None:
    experiment = with_settings(from_tables(LEARNING), "vefl.max_local_iterations=7", "learning.learning_rate=0.01")
    one, four = (
        simulate(with_settings(experiment, f"learning.iterations_per_step={n}"), out=tmp_path / str(n)) for n in (1, 4)
    )
    assert (one.vehicles["iterations"] % 4 != 0).any()  # so the last step of a CV has fewer iterations
    pd.testing.assert_frame_equal(one.vehicles, four.vehicles)
    learnt = ["accuracy", "loss"]
    pd.testing.assert_frame_equal(one.rounds.drop(columns=learnt), four.rounds.drop(columns=learnt))
    assert (one.rounds["loss"] != four.rounds["loss"]).any()
    assert (one.rounds["loss"] - four.rounds["loss"]).abs().max() < 0.02
