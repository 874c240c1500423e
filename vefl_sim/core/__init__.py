"""Foundations that all other packages use: clock, random streams, errors, checkpoint state, files and tables."""
