"""Shared by all tests: machines are noisy, so no example of a property has a deadline.

With CI in the environment the examples are the same each time; everywhere else each test run tries others.
"""

import os

from hypothesis import settings

settings.register_profile("vefl_sim", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("vefl_sim")


def pytest_make_parametrize_id(config: object, val: object, argname: str) -> str | None:
    """Archives have the time of their making in them, and every worker must give a test the same name."""
    return argname if isinstance(val, bytes) else None
