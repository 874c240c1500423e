"""Playback of recorded traffic: `mobility` tables of runs and SUMO's floating car data."""
