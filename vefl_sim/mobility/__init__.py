"""Microscopic mobility: streets, drivers, and who is in coverage when."""
