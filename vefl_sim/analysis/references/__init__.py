"""Our models beside published reference values."""
