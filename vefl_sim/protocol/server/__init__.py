"""The edge server: synchronous (with rounds), asynchronous (without rounds), centralized (all data at the server)."""
