"""`positions`: where a CV will be in a few seconds, learnt from the traffic of the run itself."""
