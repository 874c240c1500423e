"""Which CV holds which samples: groups, the rule of the split, and CVs with wrong labels."""
