"""Accuracy of the models trained on all data in one place: a bound for federated learning, and a test of the learner.

    python benchmarks/accuracy.py DIR      # DIR has folders mnist and fashion-mnist; without DIR: signs only

Mini-batches of 64, Adam at 0.001, the whole training set; accuracy on the whole test set after every second epoch.
Prints a table; takes some minutes on two cores.
"""

from script import SMALL, answer_help

import sys
import time
from pathlib import Path

import numpy as np

from vefl_sim import from_tables
from vefl_sim.experiment.plugins import load_part
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.jax_learner import JaxLearner, Options
from vefl_sim.learning.learner import LocalJob
from vefl_sim.learning.local import Shuffling

EPOCHS = 2 if SMALL else 10


def dataset(kind: str, directory: Path | None) -> Dataset:
    own = {"dir": str(directory / kind)} if directory and kind != "signs" else {}
    own |= {"train_samples": 200, "test_samples": 50} if SMALL else {}
    experiment = from_tables({"run": {"name": "accuracy"}, "data": {"kind": kind, **own}})
    return load_part("data.kind", kind).make(experiment.data, np.random.default_rng(1))


def train(data: Dataset, factory: str) -> None:
    """Train one CV that holds all data, and print a line; an epoch is one iteration of mini-batches."""
    learner = JaxLearner(
        data,
        {1: np.arange(len(data.train_targets))},
        load_part("model", factory)(data.classes),
        learning_rate=0.001,
        proximal_mu=0.0,
        seed=1,
        options=Options(optimizer="adam", shuffling=Shuffling(64, 1)),
    )
    model, began, accuracies = learner.initial_model(), time.perf_counter(), []
    for epoch in range(0, EPOCHS, 2):
        [model] = learner.train([model], [LocalJob(1, 2, number=epoch)])
        accuracies.append(f"{learner.evaluate(model).accuracy:.4f}")
    seconds = time.perf_counter() - began
    print(f"{data.name:15}{factory.split(':')[1]:10}{'  '.join(accuracies)}{seconds:8.0f} s", flush=True)


def main() -> None:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    print(f"{'data':15}{'model':10}accuracy after 2, 4, …, {EPOCHS} epochs")
    for kind in ("signs", *(("mnist", "fashion-mnist") if directory else ())):
        data = dataset(kind, directory)
        train(data, "vefl_models.cnn:cnn")
        train(data, "vefl_models.logistic:logistic")


if __name__ == "__main__":
    answer_help(__doc__)
    main()
