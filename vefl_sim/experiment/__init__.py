"""An experiment: its typed keys, the rules they obey, and the TOML they come from."""
