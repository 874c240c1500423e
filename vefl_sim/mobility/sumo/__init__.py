"""SUMO on a map: its input, its demand, and the traffic that it drives."""
