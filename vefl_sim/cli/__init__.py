"""The command line interface: commands, help texts, progress displays and exit codes."""
