"""Sweeps and comparisons: the experiments in them, where they run, their progress and their stored results."""
