"""Neural networks, one file per architecture; an experiment names one as "vefl_models.cnn:cnn"."""
