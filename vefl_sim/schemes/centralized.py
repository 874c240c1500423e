"""Centralized training: the same model on the same data in one place, as an upper bound. Nobody is ordered."""

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Plan

BATCH_SIZE = 32
"""Samples per step if `learning.batch_size` does not say: a step on all of them would take seconds."""


class Centralized:
    """One pass over all samples in mini-batches per round, at the server."""

    proximal_mu = 0.0

    def __init__(self, experiment: Experiment) -> None:
        pass

    def plan(self, observation: Observation) -> Plan:
        """Nobody."""
        nobody = np.empty(0, np.int64)
        return Plan(nobody, nobody, nobody.astype(np.float64), status="centralized", bypasses_network=True)

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """Nothing."""
        return np.empty(0)
