"""The number of cores and threads must not change a digit."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib, jax, numpy as np
from vefl_models.cnn import cnn
from vefl_sim.learning.datasets.signs import signs
from vefl_sim.learning.jax_learner import JaxLearner, Options
from vefl_sim.learning.learner import LocalJob
data = signs(120, 10, 28, np.random.default_rng(0))
shards = {0: np.arange(40), 1: np.arange(40, 120)}
learner = JaxLearner(
    data, shards, cnn(data.classes), learning_rate=0.1, proximal_mu=0.01, seed=1, options=Options(threads=THREADS)
)
models = learner.train(learner.initial_model(), [LocalJob(0, 3), LocalJob(1, 3)])
digest = hashlib.sha256(b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(models)))
print(digest.hexdigest())
"""


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or (os.cpu_count() or 1) < 2, reason="needs two cores to compare"
)
def test_one_core_and_two_give_the_same_model() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "NPROC"}

    def digest(cores: set[int]) -> str:
        return subprocess.run(
            [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {cores})\nTHREADS = {len(cores)}\n{SCRIPT}"],
            env=environment, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip

    available = sorted(os.sched_getaffinity(0))
    assert digest({available[0]}) == digest(set(available[:2]))
