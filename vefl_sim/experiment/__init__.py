"""An experiment: its typed keys, the rules between them, and how they are read from TOML."""
