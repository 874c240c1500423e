"""The figures and the table of the paper, and of any sweep, from the runs that are done."""
