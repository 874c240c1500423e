"""The figures and the table of the paper, and of any sweep, from the runs that are done.

A sweep and its [figure] (`request`) say which points make a line (`layout`); the runs of a line's seeds become one
curve (`measures`, `curves`) or cell (`grid`), which are drawn (`plot`) and written (`drawing`).
"""
