"""How much each received update counts: ω_{k+1} = ω_k + Σ_v weight_v · (ω_{v,k+1} − ω_k).

Pure functions of arrays over the *received* updates, in one order. The models themselves are combined by the
learner.
"""

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float64]


def weights(p: Weights, q: Weights, p_suc: Weights) -> Weights:
    """p_v / (q_v · p_suc,v) (aggregationRulePartialNORep); aggregationRule is the case q = 1.

    p: importance of the CV, Σ p = 1 over all CVs in coverage; q: probability that it was ordered; p_suc:
    probability that its update arrives, given the order. Dividing by the last two makes the step unbiased.
    """
    return p / (q * p_suc)


def normalized(applied: Weights) -> Weights:
    """The same weights scaled to sum to one; nothing received stays nothing."""
    return applied / applied.sum() if len(applied) else applied


def pdpc_weights(delivered: int, ordered: int, in_coverage: int, *, normalize: bool = False) -> Weights:
    """Weights of `delivered` updates under PDPC with realized p_suc.

    With V CVs in coverage p_v = 1/V, the paper's condition for its claim of unbiasedness; q_v = ordered/V, as
    if the selection were uniform; a received update has p_suc = 1 (ProbSuc). So each weighs 1/ordered, and an
    update that was lost is simply missing from the sum; normalized, each weighs 1/delivered.
    """
    p = np.full(delivered, 1 / in_coverage)
    q = np.full(delivered, ordered / in_coverage)
    applied = weights(p, q, p_suc=np.ones(delivered))
    return normalized(applied) if normalize else applied
