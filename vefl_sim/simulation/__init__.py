"""One run of one experiment: from keys to parts, from parts to processes, from start or checkpoint to the end."""
