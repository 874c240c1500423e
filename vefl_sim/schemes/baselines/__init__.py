"""Baselines of the field that the paper does not have, each with its publication; they run under the same radio."""
