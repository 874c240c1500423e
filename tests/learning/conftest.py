import numpy as np
import pytest

from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.signs import signs
from vefl_sim.learning.jax_learner import configure_jax


@pytest.fixture(scope="session", autouse=True)
def _compilation_cache() -> None:
    """Keep compiled code between test runs, in the cache of the user or in VEFL_SIM_CACHE."""
    configure_jax(threads=2)


@pytest.fixture(scope="session")
def small_signs() -> Dataset:
    return signs(200, 150, 16, np.random.default_rng(5))
