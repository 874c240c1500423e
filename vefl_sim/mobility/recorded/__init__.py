"""Recorded traffic: our own tables and SUMO's floating car data, played back."""
