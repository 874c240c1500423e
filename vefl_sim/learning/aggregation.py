"""Weights of the received updates: ω_{k+1} = ω_k + Σ_v weight_v · (ω_{v,k+1} − ω_k).

Pure functions of arrays with one entry per *received* update, all in the same order. The learner combines the models,
in this step form or, with `aggregation.form = "models"`, as ω_{k+1} = Σ_v weight_v · ω_{v,k+1}. Both forms are equal
if the weights sum to one.
"""

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float64]


def weights(p: Weights, q: Weights, p_suc: Weights) -> Weights:
    """Weights p_v / (q_v · p_suc,v) (aggregationRulePartialNORep); aggregationRule is the case q = 1.

    p: importance of the CV, Σ p = 1 over all CVs in coverage; q: probability that it is ordered to train;
    p_suc: probability that its update arrives, given the order. Dividing by the last two makes the step unbiased.
    """
    return p / (q * p_suc)


def normalized(applied: Weights) -> Weights:
    """Weights scaled to sum to one; an empty array stays empty."""
    return applied / applied.sum() if len(applied) else applied


def pdpc_weights(p_suc: Weights, ordered: int, in_coverage: int, *, normalize: bool = False) -> Weights:
    """Weights of delivered updates under PDPC, given the p_suc of each.

    With V CVs in coverage p_v = 1/V, the paper's condition for its claim of unbiasedness; q_v = ordered/V, as
    if the selection were uniform. With realized p_suc = 1 (ProbSuc) each update has weight 1/ordered, and a lost
    update is missing from the sum; normalized, each has weight 1/delivered.
    """
    p = np.full(len(p_suc), 1 / in_coverage)
    q = np.full(len(p_suc), ordered / in_coverage)
    applied = weights(p, q, p_suc)
    return normalized(applied) if normalize else applied


def fdpc_weights(p: Weights, p_suc: Weights, *, normalize: bool = False) -> Weights:
    """Weights of delivered updates under FDPC (aggregationRule): p_v of (p_V_Mobility) over p_suc."""
    applied = weights(p, np.ones(len(p)), p_suc)
    return normalized(applied) if normalize else applied


def mixed_shares(samples: Weights, sojourn_s: Weights, sojourn_weight: float) -> Weights:
    """Mix each CV's share of the data and of the sojourn bounds: p_v with λ (p_V_Mobility), Θ_v with λ̄ (thetaV)."""
    return shares((1 - sojourn_weight) * shares(samples) + sojourn_weight * shares(sojourn_s))


def shares(amount: Weights) -> Weights:
    """Each amount as a share of the total; equal shares if the total is zero."""
    total = float(amount.sum())
    return amount / total if total > 0 else np.full(len(amount), 1 / max(1, len(amount)))
