"""Shared by all tests: machines are noisy, so no example of a property has a deadline."""

from hypothesis import settings

settings.register_profile("vefl_sim", deadline=None)
settings.load_profile("vefl_sim")
