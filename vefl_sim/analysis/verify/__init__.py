"""A second look at a finished run, from nothing but its files."""
