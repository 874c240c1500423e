"""Processes: the number of cores and threads changes no digit of the results; where compiled code is kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vefl_sim.core.files import cache_directory

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


COMPILE = """
import jax
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
from vefl_sim.learning.jax_learner import configure_jax
configure_jax(threads=1)
assert jax.jit(lambda x: x + 1)(1) == 2
"""


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"VEFL_SIM_CACHE": "/mine", "XDG_CACHE_HOME": "/xdg"}, Path("/mine")),
        ({"XDG_CACHE_HOME": "/xdg"}, Path("/xdg/vefl_sim")),
        ({"VEFL_SIM_CACHE": "", "XDG_CACHE_HOME": ""}, Path.home() / ".cache/vefl_sim"),
    ],
)
def test_the_environment_determines_the_cache_directory(environment: dict[str, str], expected: Path) -> None:
    assert cache_directory(environment) == expected


def test_compiled_code_is_kept_unless_the_user_has_chosen_a_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")  # in which nothing can be written
    clean = {key: value for key, value in os.environ.items() if not key.startswith("JAX_")}
    ours = {"VEFL_SIM_CACHE": str(tmp_path / "ours")}
    chosen = {"VEFL_SIM_CACHE": str(tmp_path / "file"), "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "theirs")}
    for environment, cache in ((ours, tmp_path / "ours" / "jax"), (chosen, tmp_path / "theirs")):
        subprocess.run([sys.executable, "-W", "error", "-c", COMPILE], env=clean | environment, check=True)
        assert list(cache.iterdir())
