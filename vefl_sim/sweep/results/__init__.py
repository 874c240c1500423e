"""Results stored beside an experiment's file, so that figures need no runs."""
