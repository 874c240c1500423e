"""The actors of the simulation (server, CVs, gNB, coverage) as SimPy processes, and what they exchange."""
