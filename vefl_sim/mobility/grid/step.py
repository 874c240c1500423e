"""One step of all vehicles: sorted along their lanes, then moved, compiled as a whole."""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.kernel import kernel
from vefl_sim.mobility.grid.car_following import next_speed
from vefl_sim.mobility.grid.junctions import clear, give_back
from vefl_sim.mobility.grid.roads import NONE


class Lanes(NamedTuple):
    """A snapshot of a fleet by lane."""

    leader: Ints
    """By vehicle: the index of the one ahead in the same lane, or NONE."""
    gap_m: Floats
    """By vehicle: from its front bumper to the back bumper of the leader; infinite without one."""
    last: Ints
    """By edge: the index of the vehicle that entered it last, or NONE."""
    back_m: Floats
    """By edge: where that one's back bumper is; infinite on an empty edge."""


@kernel
def line_up(fleet, ways, length_m):
    """The lanes of a fleet.

    A vehicle that has crossed a junction while its tail is still on the lane before is listed on both, beyond
    the end of the old one, so that whoever comes next there does not run into the tail, wherever they turn.
    """
    count, edges = fleet.edge.size, ways.heading.size
    leader, gap_m = np.full(count, NONE), np.full(count, np.inf)
    last, back_m = np.full(edges, NONE), np.full(edges, np.inf)
    for i in range(count):  # tails first: everybody else there is behind them
        lane = fleet.came_from[i]
        if lane >= 0 and fleet.position_m[i] < length_m:
            last[lane], back_m[lane] = i, fleet.position_m[i] + ways.block_m - length_m
    for i in range(count):
        _line_up_one(fleet, length_m, Lanes(leader, gap_m, last, back_m), i)
    return Lanes(leader, gap_m, last, back_m)


@kernel
def _line_up_one(fleet, length_m, lanes, i):
    """Find the place of vehicle i in its lane, from the rear; there are never many."""
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
