"""The share of each delivered update in a whole that the experiment chooses."""

from typing import Literal

import numpy as np

from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Floats, Ints, Plan

Whole = Literal["delivered", "ordered", "coverage"]
"""Whose amounts sum to one: CVs that delivered, CVs with an order, or all CVs in coverage."""


def shares_over(whole: Whole, amount: Floats | Ints, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
    """Shares of the delivered updates; `amount` has one entry per CV of the observation."""
    rows = np.searchsorted(observation.cv, delivered)
    ordered, coverage = np.searchsorted(observation.cv, plan.cv), np.arange(len(amount))
    members = {"delivered": rows, "ordered": ordered, "coverage": coverage}[whole]
    shares: Floats = amount[rows] / amount[members].sum()
    return shares
