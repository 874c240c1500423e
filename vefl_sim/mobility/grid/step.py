"""One step of everybody, compiled as a whole."""

import numpy as np

from vefl_sim.core.kernel import kernel
from vefl_sim.mobility.grid.car_following import next_speed
from vefl_sim.mobility.grid.junctions import clear, give_back
from vefl_sim.mobility.grid.lanes import line_up


@kernel
def step(fleet, ways, signals, rules, now):
    """Junctions clear, everybody chooses a speed, all drive; whether anybody is over the end of its edge.

    now: the number of the step and its time in ns.
    """
    lanes = line_up(fleet, ways, rules.length_m)
    give_back(fleet, ways, signals, rules, now[1])
    clear(fleet, lanes, ways, signals, rules, now)
    count = fleet.edge.size
    speed_mps = np.empty(count)
    for i in range(count):
        speed_mps[i] = next_speed(fleet, lanes, ways, rules, i)
    over = False
    for i in range(count):
        fleet.position_m[i] += 0.5 * (fleet.speed_mps[i] + speed_mps[i]) * rules.dt_s
        fleet.speed_mps[i] = speed_mps[i]
        over |= fleet.position_m[i] >= ways.block_m
    return over
