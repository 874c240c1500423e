"""Microscopic mobility: streets, drivers, and which CVs are in coverage at what time."""
