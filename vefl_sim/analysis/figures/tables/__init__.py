"""Figures with a table: one number per run (`grid`), and the effects of swept keys (`effects`)."""
