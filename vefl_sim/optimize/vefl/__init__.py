"""The VEFL sub-problem of one round: which CVs train, how many iterations, at what CPU frequency."""

from vefl_sim.optimize.vefl.problem import METHODS, REFERENCES, VeflPlan, VeflProblem, solve

__all__ = ["METHODS", "REFERENCES", "VeflPlan", "VeflProblem", "solve"]
