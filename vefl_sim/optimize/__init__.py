"""Solvers for the optimization problems of the paper, as pure functions of arrays."""
