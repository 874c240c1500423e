"""The run directory: identity, lock, checkpoints, and the tables as they grow."""
