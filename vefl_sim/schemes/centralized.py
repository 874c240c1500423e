"""Centralized training: the same model on the same data at the server, as an upper bound. No CV gets an order."""

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import BYZANTINE_KEYS, KEYS_WITHOUT_ROUNDS, PROBLEM_KEYS, RULE_KEYS, SUM_KEYS, Plan, Scheme

EVERYTHING = 0
"""The CV number under which the learner of a centralized run holds all samples."""
BATCH_SIZE = 32
"""Samples per step if `learning.batch_size` is not given; a step on all samples would take seconds."""


class Centralized(Scheme):
    """One pass over all samples in mini-batches per round, at the server."""

    proximal_mu = 0.0
    trains_centrally = True
    unused_keys = (
        *(*RULE_KEYS, *SUM_KEYS, *PROBLEM_KEYS, *KEYS_WITHOUT_ROUNDS, *BYZANTINE_KEYS),
        *("vefl.upload_margin", "server.early_close"),
        *("scheme.constrained", "learning.proximal_mu", "learning.iterations_per_step"),
        *("update.codec", "update.levels", "update.keep_share", "downlink.kind"),
    )
    unused_environment = (
        *("data.dirichlet_alpha", "data.partition", "data.shards_per_cv", "data.holders"),
        *("scheme.selected", "vefl.budget", "adversary.share"),
    )

    def plan(self, observation: Observation) -> Plan:
        """A plan without orders."""
        no_cvs = np.empty(0, np.int64)
        return Plan(no_cvs, no_cvs, no_cvs.astype(np.float64), status="centralized", bypasses_network=True)

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """No weights, as there are no updates."""
        return np.empty(0)
