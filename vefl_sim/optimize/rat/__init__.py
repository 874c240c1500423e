"""The RAT sub-problem of one slot: which CV gets which pRB, and at what power."""

from vefl_sim.optimize.rat.problem import RatAllocation, RatPolicy, RatProblem, SlotProblem, solve

__all__ = ["RatAllocation", "RatPolicy", "RatProblem", "SlotProblem", "solve"]
