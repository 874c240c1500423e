"""Sources of labelled images."""
