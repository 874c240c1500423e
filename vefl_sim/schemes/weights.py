"""Weights of the received updates, ω_{k+1} = ω_k + Σ_v weight_v · (ω_{v,k+1} − ω_k), and the sum in Theorem 2.

Arrays have one entry per *received* update, all in the same order. The learner combines the models in this step form
or, with `aggregation.form = "models"`, as ω_{k+1} = Σ_v weight_v · ω_{v,k+1}; both are equal if the weights sum to one.
"""

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


def weights(p: Floats, q: Floats, p_suc: Floats, *, normalize: bool = False) -> Floats:
    """Weights p_v / (q_v · p_suc,v) (aggregationRulePartialNORep); aggregationRule is the case q = 1.

    p: importance of the CV, Σ p = 1 over all CVs in coverage; q: probability that it is ordered to train;
    p_suc: probability that its update arrives, given the order. Dividing by the last two makes the step unbiased.
    `normalize`: scale the weights to sum to one.
    """
    applied = p / (q * p_suc)
    return applied / applied.sum() if normalize and len(applied) else applied


def pdpc_weights(p_suc: Floats, ordered: int, in_coverage: int, *, normalize: bool = False) -> Floats:
    """Weights of delivered updates under PDPC, given the p_suc of each.

    With V CVs in coverage p_v = 1/V, the paper's condition for its claim of unbiasedness; q_v = ordered/V, as
    if the selection were uniform. With realized p_suc = 1 (ProbSuc) each update has weight 1/ordered, and a lost
    update is missing from the sum; normalized, each has weight 1/delivered.
    """
    p = np.full(len(p_suc), 1 / in_coverage)
    q = np.full(len(p_suc), ordered / in_coverage)
    return weights(p, q, p_suc, normalize=normalize)


def fdpc_weights(p: Floats, p_suc: Floats, *, normalize: bool = False) -> Floats:
    """Weights of delivered updates under FDPC (aggregationRule): p_v of (p_V_Mobility) over p_suc."""
    return weights(p, np.ones(len(p)), p_suc, normalize=normalize)


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
