import os
import subprocess
import sys
from pathlib import Path

import pytest

from vefl_sim.core.files import cache_directory

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
