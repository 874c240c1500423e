"""The number of cores and threads must not change any digit of the results."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib, sys, jax, numpy as np
from vefl_sim.learning.datasets.signs import signs
from vefl_sim.learning.jax_learner import JaxLearner, Options
from vefl_sim.learning.learner import LocalJob
from vefl_sim.experiment.plugins import load_part
threads, *factories = int(sys.argv[1]), *sys.argv[2:]
data = signs(120, 100, 28, np.random.default_rng(0))
shards = {0: np.arange(40), 1: np.arange(40, 120)}
for factory in factories:
    learner = JaxLearner(
        data, shards, load_part("model", factory)(data.classes), learning_rate=0.1, proximal_mu=0.01, seed=1,
        options=Options(threads=threads),
    )
    model = learner.initial_model()
    updates = learner.train([model] * 2, [LocalJob(0, 3), LocalJob(1, 3)])
    combined = learner.combine(model, [model] * len(updates), updates, [0.25, 0.75])
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves((updates, combined)):
        digest.update(np.asarray(leaf).tobytes())
    print(factory, digest.hexdigest(), *str(learner.evaluate(combined)).split())
"""
FACTORIES = ("vefl_models.cnn:cnn", "vefl_models.mlp:mlp", "tests.learning.plain:PlainCnn")


@pytest.mark.slow
def test_cores_and_threads_change_nothing() -> None:
    """Each number runs in a separate process, because XLA sizes its thread pool once; compiled code is shared."""
    environment = {name: value for name, value in os.environ.items() if name not in ("NPROC", "XLA_FLAGS")}

    def output(threads: int, cores: int) -> str:
        pinned = f"import os; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:{cores}])"
        script = f"{pinned if hasattr(os, 'sched_setaffinity') else ''}\n{SCRIPT}"
        return subprocess.run(
            [sys.executable, "-c", script, str(threads), *FACTORIES],
            env=environment, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip

    one, *others = output(1, 1), output(2, 2), output(4, 2)
    assert len(one.splitlines()) == len(FACTORIES)
    assert others == [one, one]
