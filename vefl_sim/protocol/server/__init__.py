"""The edge server: with rounds, without rounds, and with all data in one place."""
