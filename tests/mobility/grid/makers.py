"""Small street grids, drivers and fleets for tests."""

import numpy as np

from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment, MobilityTable, RadioTable, RoadsTable, RunTable, TrafficTable
from vefl_sim.mobility.grid.engine import TrafficEngine
from vefl_sim.mobility.grid.fleet import DRAWS, Drivers, Fleet
from vefl_sim.mobility.grid.roads import NONE, StreetGrid
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


def fleet_of(edge, position, came_from, typical):
    """Vehicles at standstill, without a next edge or a goal."""
    count = len(edge)
    return Fleet(
        vehicle=np.arange(1, count + 1),
        connected=np.ones(count, np.bool_),
        driver=drivers(typical, count),
        edge=np.array(edge, np.int64),
        position_m=np.array(position, np.float64),
        speed_mps=np.zeros(count),
        next_edge=np.full(count, NONE),
        came_from=np.array(came_from, np.int64),
        goal=np.full(count, NONE),
        limit_m=np.full(count, np.inf),
        cleared=np.zeros(count, np.bool_),
        asked_step=np.full(count, NONE),
    )
