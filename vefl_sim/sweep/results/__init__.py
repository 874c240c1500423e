"""Results stored beside an experiment's file, from which figures are drawn without any run."""
