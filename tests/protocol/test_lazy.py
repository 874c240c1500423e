"""Training only what was received, and only then, gives the very same run as training everything at once."""

from typing import Any

import pytest

from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import from_tables, simulate
from vefl_sim.learning.learner import LocalJob
from vefl_sim.protocol.orders import orders_of
from vefl_sim.protocol.server import EdgeServer

LEARNING = EXPERIMENT | {
    "learning": {"kind": "jax"},
    "data": {"kind": "signs", "train_samples": 60, "test_samples": 50, "image_px": 16, "min_samples": 20},
    "model": {"factory": "vefl_models.cnn:cnn"},
    "sla": EXPERIMENT["sla"] | {"cycles_per_bit": [200.0, 200.0]},
}


class EagerServer(EdgeServer):
    """Trains every order when it is sent, one by one, and only looks the results up later."""

    trained: int = 0

    def _send(self, observation, plan, cause) -> Any:
        self.eager = {}
        for order in orders_of(observation, plan):
            job = LocalJob(order.cv, order.iterations, order.round)
            self.eager[order.cv] = self.learner.train(self.model, [job])[0]
            EagerServer.trained += 1
        return super()._send(observation, plan, cause)

    def _close(self, *arguments) -> None:
        learner = self.learner
        self.learner = _LookUp(learner, self.eager)
        super()._close(*arguments)
        self.learner = learner


class _LookUp:
    def __init__(self, learner, eager) -> None:
        self.learner, self.eager = learner, eager

    def train(self, model, jobs) -> list[Any]:
        return [self.eager[job.cv] for job in jobs]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)


def test_lazy_is_eager(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    experiment = from_tables(LEARNING)
    lazy = simulate(experiment, out=tmp_path / "lazy")
    monkeypatch.setattr("vefl_sim.scenario.EdgeServer", EagerServer)
    eager = simulate(experiment, out=tmp_path / "eager")
    assert EagerServer.trained > lazy.summary["updates_delivered"]  # it has trained what was lost, too
    assert lazy.summary["last_accuracy"] is not None
    assert lazy.content_digest() == eager.content_digest()
