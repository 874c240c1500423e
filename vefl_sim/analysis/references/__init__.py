"""Compares our models with published reference values."""
