"""Reads the results of runs: summaries, figures, explanations and checks."""
