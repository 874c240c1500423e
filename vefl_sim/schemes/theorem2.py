"""The sum in Theorem 2 of the paper, for the schemes that aggregate by its rule."""

import math

from vefl_sim.experiment import Aggregation
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Plan, Scheme


def theorem2_sum(scheme: Scheme, observation: Observation, plan: Plan, aggregation: Aggregation) -> float | None:
    """Σ p_v/(q_v·p_suc,v) over all CVs in coverage, ordered or not: what the rule would give each if it delivered.

    None without orders, where q_v = 0, and for normalized weights, which follow another rule than the theorem's.
    """
    if aggregation.normalize or not len(plan.cv):
        return None
    return math.fsum(scheme.aggregate(observation, plan, observation.cv))
