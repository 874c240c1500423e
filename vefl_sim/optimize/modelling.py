"""The modelling library behind the paper's algorithms, loaded when one of them is asked for."""

import importlib
from typing import Any

from vefl_sim.core.errors import RunFailed


def cvxpy() -> Any:
    """The library, imported only here: it is slow to load."""
    try:
        return importlib.import_module("cvxpy")
    except ImportError as error:
        raise RunFailed("the method sca needs cvxpy: pip install cvxpy") from error
