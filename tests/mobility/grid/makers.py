"""Small street grids, drivers and fleets for tests."""

import numpy as np

from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment, MobilityTable, RadioTable, RoadsTable, RunTable, TrafficTable
from vefl_sim.mobility.grid.engine import TrafficEngine
from vefl_sim.mobility.grid.fleet import DRAWS, Drivers
from vefl_sim.mobility.grid.roads import StreetGrid
from vefl_sim.mobility.grid.routes import GridRoutes


def drivers(typical, count=1):
    """Identical drivers."""
    return Drivers.drawn(typical, 0.0, np.full((count, DRAWS), 0.5))


def empty_streets(block_m=128.0, speed=15.0, dt=0.1, signals="none", **traffic):
    """A grid of 4 × 4 blocks without vehicles."""
    experiment = Experiment(
        run=RunTable(name="x"),
        roads=RoadsTable(blocks=4, block_m=block_m, signals=signals),
        radio=RadioTable(coverage_radius_m=50.0),
        mobility=MobilityTable(max_speed_mps=speed, step_s=dt),
        traffic=TrafficTable(**traffic),
    )
    routes = GridRoutes(StreetGrid.rectangle(4, 4, block_m), experiment.traffic)
    return TrafficEngine(experiment, routes, dt, Streams(1))
