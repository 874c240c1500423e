import os
from collections.abc import Iterator

import numpy as np
import pytest

from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.signs.drawing import signs


@pytest.fixture(scope="session", autouse=True)
def _own_compilation_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tests out of the user's cache; set VEFL_SIM_CACHE to keep compiled code between test runs."""
    with pytest.MonkeyPatch.context() as patch:
        if "VEFL_SIM_CACHE" not in os.environ:
            patch.setenv("VEFL_SIM_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def small_signs() -> Dataset:
    return signs(200, 150, 16, np.random.default_rng(5))
