"""Centralized training: the same model on the same data at the server, as an upper bound. No CV gets an order."""

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Plan

BATCH_SIZE = 32
"""Samples per step if `learning.batch_size` is not given; a step on all samples would take seconds."""


class Centralized:
    """One pass over all samples in mini-batches per round, at the server."""

    proximal_mu = 0.0

    def __init__(self, experiment: Experiment) -> None:
        pass

    def plan(self, observation: Observation) -> Plan:
        """A plan without orders."""
        no_cvs = np.empty(0, np.int64)
        return Plan(no_cvs, no_cvs, no_cvs.astype(np.float64), status="centralized", bypasses_network=True)

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """No weights, as there are no updates."""
        return np.empty(0)
