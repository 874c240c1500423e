"""Cases of `python benchmarks`: start-up, a run without learning, and the learner."""

from harness import ROOT, Figures, Turn, cpu_s, timed
from script import answer_help

import os
import subprocess
import sys
import tempfile
import time
from functools import partial

import numpy as np

import vefl_sim
from vefl_models.cnn import cnn
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.jax_learner import JaxLearner, Options
from vefl_sim.learning.learner import LocalJob

SIMULATED_S = {"fdpc": 50.0, "pdpc": 150.0}
CVS, SAMPLES, ITERATIONS, TEST_SAMPLES = 4, 200, 10, 2000


def start() -> Turn:
    command, paths = [sys.executable, "-m", "vefl_sim", "--help"], os.environ | {"PYTHONPATH": str(ROOT)}
    work = partial(subprocess.run, command, env=paths, check=True, stdout=subprocess.DEVNULL)
    return lambda: {"start: --help, s": timed(work, cpu_s)[0]}


class Phases(vefl_sim.RunWatcher):
    """CPU time when a run begins to prepare, and when its first round starts."""

    def preparing(self, experiment: vefl_sim.Experiment) -> None:
        self.preparing_s = time.process_time()

    def started(self, run: object, scenario: object) -> None:
        self.started_s = time.process_time()


def network() -> Turn:
    run_without_learning("fdpc", 5.0)  # compile
    return lambda: run_without_learning("fdpc") | run_without_learning("pdpc")


def run_without_learning(scheme: str, simulated_s: float | None = None) -> Figures:
    """Simulate the default world, with 35 CVs in coverage, a square grid and Z = 10."""
    simulated_s = simulated_s or SIMULATED_S[scheme]
    tables = {
        "run": {"name": "bench", "duration_s": simulated_s},
        "scheme": {"kind": scheme},
        "data": {"train_samples": 4000, "test_samples": 100},
        "learning": {"kind": "none"},
    }
    phases, name = Phases(), f"network: {scheme.upper()}"
    with tempfile.TemporaryDirectory() as folder:
        vefl_sim.simulate(vefl_sim.from_tables(tables), out=folder, watcher=phases)
        ended_s = time.process_time()
    return {
        f"{name}, preparation, s": phases.started_s - phases.preparing_s,
        f"{name}, × real time": simulated_s / (ended_s - phases.started_s),
    }


def learning() -> Turn:
    rng, total = np.random.default_rng(0), CVS * SAMPLES
    images, labels = rng.integers(0, 256, (TEST_SAMPLES, 28, 28, 1), np.uint8), rng.integers(0, 10, TEST_SAMPLES)
    data = Dataset("noise", images[:total], labels[:total].astype(np.int32), images, labels.astype(np.int32), 10)
    shards = dict(enumerate(np.arange(total).reshape(CVS, SAMPLES)))
    options = Options(threads=1)
    learner = JaxLearner(data, shards, cnn(10), learning_rate=0.05, proximal_mu=0.01, seed=1, options=options)
    model, jobs = learner.initial_model(), [LocalJob(cv, ITERATIONS) for cv in shards]
    train, evaluate = partial(learner.train, [model] * CVS, jobs), partial(learner.evaluate, model)
    train(), evaluate()  # compile
    return lambda: {
        "learning: sample-iterations per s": total * ITERATIONS / timed(train)[0],
        f"learning: evaluation of {TEST_SAMPLES} images, ms": 1e3 * timed(evaluate)[0],
    }


if __name__ == "__main__":
    answer_help(__doc__)
    sys.exit("this file has no figures of its own to print: python benchmarks")
