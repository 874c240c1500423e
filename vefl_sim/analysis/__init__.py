"""Reads finished runs: summaries, figures, explanations and checks."""
