"""The run directory: its name and versions, its lock, checkpoints and tables."""
