"""Solvers for the optimization problems of the paper, as pure functions of arrays; and CVXPY, loaded on demand."""

import importlib
import warnings
from typing import Any

from vefl_sim.core.errors import RunFailed


def cvxpy() -> Any:
    """The `cvxpy` module, imported on the first call because it is slow to load."""
    try:
        return importlib.import_module("cvxpy")
    except ImportError as error:
        raise RunFailed(
            'The methods "sca…" of vefl.method and rat.method need CVXPY: run "pip install cvxpy".'
        ) from error


def is_solved(problem: Any, **options: Any) -> bool:
    """Whether CVXPY solves this problem with these options; False also if the solver fails."""
    cp = cvxpy()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem.solve(**options)
    except (cp.SolverError, ValueError):
        return False
    return problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
