"""One time step of all vehicles: sorted by lane, then moved; compiled as a whole."""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.kernel import kernel
from vefl_sim.mobility.grid.car_following import next_speed
from vefl_sim.mobility.grid.junctions import clear, give_back
from vefl_sim.mobility.grid.roads import NONE


class Lanes(NamedTuple):
    """The order of the vehicles in their lanes at one time."""

    leader: Ints
    """By vehicle: index of the vehicle ahead in the same lane, or NONE."""
    gap_m: Floats
    """By vehicle: distance from its front bumper to the back bumper of its leader; infinite without a leader."""
    last: Ints
    """By edge: index of the vehicle that entered it last, or NONE."""
    back_m: Floats
    """By edge: position of the back bumper of that vehicle; infinite on an empty edge."""


@kernel
def line_up(fleet, ways, length_m):
    """Sort the vehicles of a fleet into their lanes.

    A vehicle that has crossed a junction while its rear is still on the previous lane is listed on both: on the
    previous lane beyond its end, so that the next vehicle there does not run into its rear, wherever it turns.
    """
    count, edges = fleet.edge.size, ways.heading.size
    leader, gap_m = np.full(count, NONE), np.full(count, np.inf)
    last, back_m = np.full(edges, NONE), np.full(edges, np.inf)
    for i in range(count):  # vehicles with their rear on the previous lane first: all others on it are behind them
        lane = fleet.came_from[i]
        if lane >= 0 and fleet.position_m[i] < length_m:
            last[lane], back_m[lane] = i, fleet.position_m[i] + ways.block_m - length_m
    for i in range(count):
        _line_up_one(fleet, length_m, Lanes(leader, gap_m, last, back_m), i)
    return Lanes(leader, gap_m, last, back_m)


@kernel
def _line_up_one(fleet, length_m, lanes, i):
    """Insert vehicle i into its lane, searching from the rear; a lane never holds many vehicles."""
    lane, position_m = fleet.edge[i], fleet.position_m[i]
    follower, ahead, back_m = NONE, lanes.last[lane], lanes.back_m[lane]
    while ahead != NONE and fleet.edge[ahead] == lane and fleet.position_m[ahead] < position_m:
        follower, ahead, back_m = ahead, lanes.leader[ahead], fleet.position_m[ahead] + lanes.gap_m[ahead]
    lanes.leader[i], lanes.gap_m[i] = ahead, back_m - position_m
    if follower == NONE:
        lanes.last[lane], lanes.back_m[lane] = i, position_m - length_m
    else:
        lanes.leader[follower], lanes.gap_m[follower] = i, position_m - length_m - fleet.position_m[follower]


@kernel
def step(fleet, ways, signals, rules, now):
    """Clear junctions, choose all speeds, move all vehicles; return whether any has passed the end of its edge.

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
