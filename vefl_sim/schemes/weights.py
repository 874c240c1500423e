"""Aggregation weights as shares over a chosen set of CVs, and the sum in Theorem 2 of the paper."""

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.experiment import AggregationTable, Experiment
from vefl_sim.experiment.plugins import Unused
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import SUM_KEYS, Plan, Scheme

Whole = Literal["delivered", "ordered", "coverage"]
"""The set of CVs whose shares sum to one: those that delivered, those with an order, or all in coverage."""


def shares_over(whole: Whole, amount: Floats | Ints, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
    """Share of each delivered update in the sum over `whole`; `amount` has one entry per CV of the observation."""
    rows = np.searchsorted(observation.cv, delivered)
    ordered, coverage = np.searchsorted(observation.cv, plan.cv), np.arange(len(amount))
    members = {"delivered": rows, "ordered": ordered, "coverage": coverage}[whole]
    shares: Floats = amount[rows] / amount[members].sum()
    return shares


def unused_if_normalized(experiment: Experiment) -> Iterator[Unused]:
    """Yield the keys without effect if the applied weights are scaled to sum to one."""
    if experiment.aggregation.normalize:
        yield "aggregation.normalize = true, which makes the weights sum to one", SUM_KEYS


def unused_if_delivered(whole: Whole) -> Iterator[Unused]:
    """Yield the key without effect if the applied weights are shares: then both forms give the same model."""
    if whole == "delivered":
        yield "weights over the delivered updates, which sum to one (aggregation.weights_over)", ("aggregation.form",)


def theorem2_sum(
    scheme: Scheme, observation: Observation, plan: Plan, aggregation: AggregationTable, cvs: Ints
) -> float | None:
    """Σ p_v/(q_v·p_suc,v) over the CVs with p_v > 0, ordered or not: the sum of their weights if all delivered.

    None without orders, where q_v = 0, and if the weights do not follow the rule of the theorem.
    """
    other_rule = (
        aggregation.normalize or aggregation.form == "models" or aggregation.weights_over not in (None, "ordered")
    )
    if other_rule or not len(plan.cv):
        return None
    return math.fsum(scheme.aggregate(observation, plan, cvs))
