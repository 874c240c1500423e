"""Learning schemes: a plan for a round, a local objective, and weights for the updates."""
