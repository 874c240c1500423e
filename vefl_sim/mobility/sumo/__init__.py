"""Traffic simulated by SUMO on a map: input files, demand, calibration and trajectories."""
