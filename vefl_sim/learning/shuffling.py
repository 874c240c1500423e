"""In which order a CV goes through its samples when it learns from mini-batches."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vefl_sim.learning.learner import LocalJob


@dataclass(frozen=True)
class Shuffling:
    """Draws an order for every pass. It belongs to (seed, CV, order, iteration), never to the order of calls."""

    batch_size: int
    seed: int

    def order(self, job: LocalJob, iteration: int, size: int) -> NDArray[np.int64]:
        """A permutation of 0 … size − 1 for one iteration of a job."""
        key = np.random.SeedSequence(self.seed, spawn_key=(job.cv, job.number, iteration))
        return np.random.Generator(np.random.PCG64(key)).permutation(size)
