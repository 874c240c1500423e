"""A run as a trace for Perfetto, the trace viewer at ui.perfetto.dev."""
