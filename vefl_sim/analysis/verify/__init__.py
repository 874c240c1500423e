"""Verifies a run from its files alone."""
