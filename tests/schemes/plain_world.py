"""Parked cars that train a linear classifier, and what each of them does in plain numpy: an oracle for schemes."""

import numpy as np

from tests.scripted import ScriptedCars
from vefl_sim import Experiment, Run, from_tables, simulate
from vefl_sim.core.rng import Streams
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.simulation.scenario import build_scenario

RATE, ROUNDS, STEPS = 0.3, 4, 5


class ParkedCars(ScriptedCars):
    """Five cars that stay where they are."""

    paths = tuple(lambda s, x=x: (x, 50.0) for x in (-120.0, -60.0, 0.0, 60.0, 120.0))


def clouds(experiment: Experiment, streams: Streams) -> Dataset:
    """Three classes of points in the plane."""
    rng = np.random.default_rng(11)
    labels = rng.integers(3, size=260).astype(np.int32)
    points = rng.normal(size=(260, 4)) + np.eye(4)[labels] * 1.5
    x = points.astype(np.float32)
    skewed = 1 + (2 * labels[60:] + (rng.random(200) < 0.6) * rng.integers(5, size=200)) % 5  # car of each sample
    return Dataset("clouds", x[60:], labels[60:], x[:60], labels[:60], classes=3, train_vehicles=skewed)


def experiment(kind: str, **tables: dict[str, object]) -> Experiment:
    """An experiment without constraints: every car does STEPS iterations and delivers."""
    world: dict[str, dict[str, object]] = {
        "run": {"name": "plain", "rounds": ROUNDS, "checkpoint_every": 1},
        "mobility": {"kind": "tests.schemes.plain_world:ParkedCars"},
        "vefl": {"round_s": 1.0, "max_local_iterations": STEPS},
        "scheme": {"kind": kind, "constrained": False},
        "data": {"kind": "tests.schemes.plain_world:clouds", "partition": "own", "min_samples": 5},
        "model": {"factory": "vefl_models.logistic:logistic"},
        "learning": {"learning_rate": RATE, "keep_models": 1},
    }
    return from_tables({name: world.get(name, {}) | tables.get(name, {}) for name in {*world, *tables}})


def models_of(run: Run) -> list[np.ndarray]:
    """The models after all rounds, each as one vector: biases, then weights by input."""
    kept = [run.model(round).arrays for round in run.kept_models]
    return [np.concatenate([m["params.Dense_0.bias"], m["params.Dense_0.kernel"].ravel()]) for m in kept]


class PlainWorld:
    """The data of each car, and gradient descent on them."""

    def __init__(self, experiment: Experiment) -> None:
        scenario = build_scenario(experiment)
        data = scenario.dataset
        self.cars = sorted(scenario.shards)
        self._samples = {
            cv: (data.train_inputs[own].astype(np.float64), data.train_targets[own])
            for cv, own in scenario.shards.items()
        }
        self.sizes = np.array([len(scenario.shards[cv]) for cv in self.cars], np.float64)
        self.start = np.zeros(3 + 4 * 3)

    def losses(self, w: np.ndarray, cv: int) -> np.ndarray:
        x, y = self._samples[cv]
        logits = w[:3] + x @ w[3:].reshape(4, 3)
        return np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(y)), y]

    def gradient(self, w: np.ndarray, cv: int) -> np.ndarray:
        x, y = self._samples[cv]
        logits = w[:3] + x @ w[3:].reshape(4, 3)
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True) - np.eye(3)[y]
        return np.concatenate([p.mean(axis=0), (x.T @ p).ravel() / len(y)])

    def train(self, w, cv, *, slope=0.0, mu=0.0, momentum=0.0, drift=0.0, steps=STEPS, merged=1) -> np.ndarray:
        """ω ← ω − δ·v − δ·drift with v ← momentum·v + ∇F + μ·(ω − ω_k) + slope; `merged` steps are one longer step."""
        local, v = w.copy(), np.zeros_like(w)
        for done in range(0, steps, merged):
            rate = RATE * min(merged, steps - done)
            v = momentum * v + self.gradient(local, cv) + mu * (local - w) + slope
            local = local - rate * v - rate * drift
        return local

    def all(self, w, **options) -> np.ndarray:
        """The trained models of all cars, as rows."""
        return np.array([self.train(w, cv, **options) for cv in self.cars])


def simulated(tmp_path, kind: str, **tables) -> tuple[PlainWorld, list[np.ndarray]]:
    """The plain world, and the models of a run after each round."""
    of = experiment(kind, **tables)
    return PlainWorld(of), models_of(simulate(of, out=tmp_path))
