"""Learning schemes: a plan for a round, and weights for its updates."""
