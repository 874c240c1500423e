"""The commands `sweep` and `figure`."""
