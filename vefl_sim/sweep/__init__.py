"""Many runs of one experiment: which, on which machines, and how far they are."""
