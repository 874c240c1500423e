"""What everything else stands on: clock, random streams, errors, state, files and tables."""
