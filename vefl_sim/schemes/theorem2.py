"""The sum in Theorem 2 of the paper, for the schemes that aggregate by its rule."""

import math

from vefl_sim.experiment.experiment import Aggregation
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Ints, Plan, Scheme


def theorem2_sum(
    scheme: Scheme, observation: Observation, plan: Plan, aggregation: Aggregation, cvs: Ints
) -> float | None:
    """Σ p_v/(q_v·p_suc,v) over the CVs with p_v > 0, ordered or not: what the rule would give each if it delivered.

    None without orders, where q_v = 0, and for weights that follow another rule than the theorem's.
    """
    other_rule = (
        aggregation.normalize or aggregation.form == "models" or aggregation.weights_over not in (None, "ordered")
    )
    if other_rule or not len(plan.cv):
        return None
    return math.fsum(scheme.aggregate(observation, plan, cvs))
