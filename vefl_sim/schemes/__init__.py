"""Learning schemes: each plans a round, sets the local objective and weights the updates in the aggregation."""
