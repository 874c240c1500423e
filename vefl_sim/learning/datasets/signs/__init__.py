"""Traffic signs drawn by the program."""
