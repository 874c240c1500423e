"""Who waits for whom: the actors as SimPy processes."""
