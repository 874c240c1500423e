"""Which samples of a data set are used: all, or as many as the experiment says."""

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Data


class Choice:
    """Draws the subsets. Training and test set have streams of their own, and a larger subset holds the smaller."""

    def __init__(self, data: Data, rng: np.random.Generator) -> None:
        self._data = data
        self._train_rng, self._test_rng = rng.spawn(2)

    def train(self, available: int) -> NDArray[np.int64]:
        """Numbers of the training samples to use, ascending."""
        return self._drawn("train_samples", self._data.train_samples, available, self._train_rng)

    def test(self, available: int) -> NDArray[np.int64]:
        """Numbers of the test samples to use, ascending."""
        return self._drawn("test_samples", self._data.test_samples, available, self._test_rng)

    def _drawn(self, key: str, wanted: int | None, available: int, rng: np.random.Generator) -> NDArray[np.int64]:
        if wanted is None:
            return np.arange(available)
        if wanted > available:
            raise ExperimentError(
                f'data.{key} = {wanted}, but data.kind = "{self._data.kind}" has {available} there: lower it, or leave '
                "it out for all."
            )
        return np.sort(rng.permutation(available)[:wanted])
