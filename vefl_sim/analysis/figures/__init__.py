"""Draws the figures and the table of the paper, and figures of any sweep, from finished points.

The [figure] table of a sweep (`request`) determines which points form a line (`layout`). The runs of a line, one per
seed, become numbers (`measures`, `chart`), which are drawn (`panel`), tabulated (`tables`, `effects`), and written and
printed (`drawing`).
"""
